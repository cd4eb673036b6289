// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/length_statistics.hpp>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>

namespace millrace::dataset {

namespace detail {

/// Lengths from here on are kept in a map: an array of all would be large, and these are rare.
inline constexpr std::int64_t long_length = std::int64_t{1} << 20;

inline length_statistics summary_of(const length_counts& lengths) {
  length_statistics result{.count = lengths.count()};
  if (result.count == 0) return result;
  result.empty = lengths.by_power_of_two().front();
  result.min = lengths.min();
  result.median = lengths.median();
  result.mean = lengths.mean();
  result.max = lengths.max();
  return result;
}

}  // namespace detail

MILLRACE_INLINE void length_counts::add_new(std::int64_t length, std::int64_t times) {
  if (length >= detail::long_length) {
    long_[length] += times;
    return;
  }
  const auto wanted = static_cast<std::size_t>(length) + 1;
  short_.resize(std::max<std::size_t>(std::bit_ceil(wanted), 1024));
  short_[wanted - 1] += times;
}

MILLRACE_INLINE length_counts& length_counts::operator+=(const length_counts& other) {
  other.for_each([&](std::int64_t length, std::int64_t times) { add(length, times); });
  return *this;
}

MILLRACE_INLINE std::int64_t length_counts::min() const noexcept {
  return count_ == 0 ? 0 : nth(0);
}

MILLRACE_INLINE std::int64_t length_counts::max() const noexcept {
  return count_ == 0 ? 0 : nth(count_ - 1);
}

MILLRACE_INLINE std::int64_t length_counts::nth(std::int64_t k) const noexcept {
  std::int64_t before = 0;
  for (std::size_t i = 0; i < short_.size(); ++i) {
    before += short_[i];
    if (k < before) return static_cast<std::int64_t>(i);
  }
  for (const auto& [length, times] : long_) {
    before += times;
    if (k < before) return length;
  }
  return 0;
}

MILLRACE_INLINE std::int64_t length_counts::quantile(double q) const noexcept {
  if (count_ == 0) return 0;
  const auto least = static_cast<std::int64_t>(std::ceil(q * static_cast<double>(count_)));
  return nth(std::clamp<std::int64_t>(least - 1, 0, count_ - 1));
}

MILLRACE_INLINE double length_counts::median() const noexcept {
  if (count_ == 0) return 0;
  return (static_cast<double>(nth((count_ - 1) / 2)) + static_cast<double>(nth(count_ / 2))) / 2;
}

MILLRACE_INLINE std::vector<std::int64_t> length_counts::by_power_of_two() const {
  std::vector<std::int64_t> counts;
  for_each([&](std::int64_t length, std::int64_t times) {
    const auto power = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(length)));
    if (power >= counts.size()) counts.resize(power + 1);
    counts[power] += times;
  });
  return counts;
}

MILLRACE_INLINE length_statistics sequence_lengths(const indexed_dataset& data) {
  length_counts counts;
  for (std::int64_t i = 0; i < data.sequence_count(); ++i) counts.add(data.sequence_length(i));
  return detail::summary_of(counts);
}

MILLRACE_INLINE length_statistics document_lengths(const indexed_dataset& data) {
  length_counts counts;
  for (std::int64_t d = 0; d < data.document_count(); ++d) {
    const document_range range = data.document(d);
    std::int64_t length = 0;  // no overflow: lengths are < 2^31, and a file has < 2^32 lengths
    for (std::int64_t i = range.first; i < range.last; ++i) length += data.sequence_length(i);
    counts.add(length);
  }
  return detail::summary_of(counts);
}

}  // namespace millrace::dataset
