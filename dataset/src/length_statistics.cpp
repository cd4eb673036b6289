// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/length_statistics.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>

#include <millrace/dataset/indexed_dataset.hpp>

namespace millrace::dataset {

namespace detail {

template <class Value>
length_statistics summarise(std::int64_t count, const Value& value) {
  length_statistics result{.count = count};
  if (count == 0) return result;
  result.min = std::numeric_limits<std::int64_t>::max();
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    const std::int64_t length = value(i);
    result.empty += length == 0;
    result.min = std::min(result.min, length);
    result.max = std::max(result.max, length);
    sum += static_cast<double>(length);
  }
  result.mean = sum / static_cast<double>(count);
  const auto upper = nth_smallest(count, value, count / 2, result.max);
  const auto lower = count % 2 != 0 ? upper : nth_smallest(count, value, count / 2 - 1, result.max);
  result.median = (static_cast<double>(lower) + static_cast<double>(upper)) / 2;
  return result;
}

}  // namespace detail

MILLRACE_INLINE length_statistics sequence_lengths(const indexed_dataset& data) {
  return detail::summarise(data.sequence_count(),
                           [&](std::int64_t i) { return data.sequence_length(i); });
}

MILLRACE_INLINE length_statistics document_lengths(const indexed_dataset& data) {
  return detail::summarise(data.document_count(), [&](std::int64_t d) {
    const document_range range = data.document(d);
    std::int64_t length = 0;  // no overflow: lengths are < 2^31, and a file has < 2^32 lengths
    for (std::int64_t i = range.first; i < range.last; ++i) length += data.sequence_length(i);
    return length;
  });
}

}  // namespace millrace::dataset
