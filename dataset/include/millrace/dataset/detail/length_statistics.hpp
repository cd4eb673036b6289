// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// How often each length occurs, in tokens. Takes at most 8 MiB, and more only for documents of a
/// million tokens.
class MILLRACE_EXPORT length_counts {
 public:
  /// @pre length >= 0, times >= 0
  void add(std::int64_t length, std::int64_t times = 1) {
    count_ += times;
    sum_ += length * times;
    if (length < std::ssize(short_)) {
      short_[static_cast<std::size_t>(length)] += times;
    } else {
      add_new(length, times);
    }
  }
  length_counts& operator+=(const length_counts& other);

  std::int64_t count() const noexcept { return count_; }
  /// The sum of all lengths.
  std::int64_t sum() const noexcept { return sum_; }
  double mean() const noexcept {
    return count_ == 0 ? 0 : static_cast<double>(sum_) / static_cast<double>(count_);
  }
  /// The least length; 0 if there are none.
  std::int64_t min() const noexcept;
  std::int64_t max() const noexcept;
  /// The k-th smallest length, from 0.
  /// @pre 0 <= k < count()
  std::int64_t nth(std::int64_t k) const noexcept;
  /// The least length that at least a fraction `q` of all lengths do not exceed; 0 if there are
  /// none. The same as numpy's quantile with method "inverted_cdf".
  /// @pre 0 <= q <= 1
  std::int64_t quantile(double q) const noexcept;
  /// For an even count, the mean of the two middle lengths.
  double median() const noexcept;
  /// Number of lengths that are 0; then that are 1, 2 or 3, 4 to 7, and so on: entry i > 0 counts
  /// the lengths from 2^(i-1) to 2^i - 1. Ends with the entry of max().
  std::vector<std::int64_t> by_power_of_two() const;

  /// Calls look(length, times) for each length that occurs, shortest first.
  template <class Look>
  void for_each(Look&& look) const {
    for (std::size_t i = 0; i < short_.size(); ++i) {
      if (short_[i] != 0) look(static_cast<std::int64_t>(i), short_[i]);
    }
    for (const auto& [length, times] : long_) look(length, times);
  }

 private:
  void add_new(std::int64_t length, std::int64_t times);

  std::int64_t count_ = 0;
  std::int64_t sum_ = 0;
  std::vector<std::int64_t> short_;            // by length
  std::map<std::int64_t, std::int64_t> long_;  // other lengths
};

/// Statistics of a list of lengths, in tokens. All zero if the list is empty.
struct length_statistics {
  std::int64_t count = 0;  ///< number of lengths
  std::int64_t empty = 0;  ///< number of lengths that are 0
  std::int64_t min = 0;
  double median = 0;  ///< for an even count, the mean of the two middle lengths
  double mean = 0;
  std::int64_t max = 0;
};

/// Lengths of all sequences. Reads the `.idx` once.
///
/// @throws format_error  a length is negative.
MILLRACE_EXPORT length_statistics sequence_lengths(const indexed_dataset& data);

/// Lengths of all documents. A document's length is the sum of its sequences' lengths. Same cost as
/// `sequence_lengths`.
///
/// @throws format_error  a length is negative, or the document index is not ascending.
MILLRACE_EXPORT length_statistics document_lengths(const indexed_dataset& data);

}  // namespace millrace::dataset
