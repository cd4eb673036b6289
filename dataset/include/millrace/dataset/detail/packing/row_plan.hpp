// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include <millrace/dataset/detail/packing/packing_algorithm.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

struct row_plan_options {
  packing_algorithm algorithm = packing_algorithm::first_fit_decreasing;  ///< any but `best_fit`
  std::int64_t seq_len = 0;                                               ///< tokens per row
  std::uint32_t seed = 0;  ///< of numpy.random; only for the first-fit algorithms
};

/// All documents of a dataset, packed into rows at once. The rows, their order, and the order of
/// the documents in each row are exactly those of the programs that the algorithms are named after:
///
/// - `first_fit_decreasing` and `first_fit_shuffle` are `create_packing_strategy` and
///   `fill_packing_strategy` of megatron-bridge 0.6.2, after `numpy.random.seed(seed)`. Lengths are
///   sorted in descending order, or shuffled. Each goes into the first row that has room for it.
///   Which document of that length it is, is drawn from the documents that remain.
/// - `modified_first_fit_decreasing` is `pack_samples` of Megatron-LM's pull request 5017. A
///   document is large if it is longer than half a row, medium above a third, small above a sixth,
///   else tiny. (1) Each large document begins a row, the longest first. (2) In this order, each
///   row gets the longest medium document that fits. (3) In reverse order, each row without a
///   medium one gets the shortest small document and the longest one that fits beside it, if two
///   fit. (4) In order again, each row is filled with the longest documents that fit. (5) Those
///   that remain, the longest first, go into the emptiest of the rows that this step began, or
///   begin a new row if they do not fit. Rows of step 5 are sorted by their tokens, the emptiest
///   first. Of documents with the same length, the first is taken; in step 3, the last is taken as
///   the longest.
/// - `one_per_row` makes a row of each document, in stored order.
///
/// Documents longer than a row, and documents without tokens, are in no row. Immutable;
/// thread-safe.
///
/// A plan takes 8 bytes per document and 4 per row. Making it takes up to 12 bytes per document and
/// 24 per row, on one thread.
class MILLRACE_EXPORT row_plan {
 public:
  static constexpr std::uint32_t no_row = 0xFFFFFFFF;

  /// `lengths(first, last, out)` replaces `out` with the lengths of documents [first, last), as
  /// they count in a row: 0 or more. It is called several times, and must not change its mind.
  using lengths_reader =
      std::function<void(std::int64_t, std::int64_t, std::vector<std::int64_t>&)>;

  /// @param documents  number of documents
  /// @throws config_error  seq_len is not in 1 to 2^24, or there are 2^32 - 1 documents or more
  /// @throws               what `lengths` throws
  row_plan(const row_plan_options& options, std::int64_t documents, const lengths_reader& lengths);

  std::int64_t document_count() const noexcept { return std::ssize(row_of_); }
  std::int64_t row_count() const noexcept { return std::ssize(begins_) - 1; }

  /// Documents of a row, in the order in which they are in it.
  /// @pre 0 <= row < row_count()
  std::span<const std::uint32_t> documents_of(std::int64_t row) const noexcept {
    const auto r = static_cast<std::size_t>(row);
    return std::span(documents_).subspan(begins_[r], begins_[r + 1] - begins_[r]);
  }

  /// The row of a document, or `no_row`.
  /// @pre 0 <= document < document_count()
  std::uint32_t row_of(std::int64_t document) const noexcept {
    return row_of_[static_cast<std::size_t>(document)];
  }

  /// Documents that are longer than a row.
  std::int64_t overlong() const noexcept { return overlong_; }
  /// The first of them, if there are any, and its length.
  std::int64_t first_overlong() const noexcept { return first_overlong_; }
  std::int64_t first_overlong_length() const noexcept { return first_overlong_length_; }

 private:
  std::vector<std::uint32_t> documents_;  // row by row
  std::vector<std::uint32_t> begins_;     // [rows + 1]: offsets in documents_
  std::vector<std::uint32_t> row_of_;     // [documents]
  std::int64_t overlong_ = 0;
  std::int64_t first_overlong_ = 0;
  std::int64_t first_overlong_length_ = 0;
};

}  // namespace millrace::dataset
