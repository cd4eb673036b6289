// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>

namespace millrace::dataset {

/// What a list of lengths looks like, in tokens. All zero where the list is empty.
struct length_statistics {
  std::int64_t count = 0;  ///< of lengths
  std::int64_t empty = 0;  ///< of lengths that are 0
  std::int64_t min = 0;
  double median = 0;  ///< of an even count, the mean of the two in the middle
  double mean = 0;
  std::int64_t max = 0;
};

/// Lengths of all sequences. Reads the `.idx` a few times in a row, in constant memory.
///
/// @throws format_error  a length is negative.
length_statistics sequence_lengths(const indexed_dataset& data);

/// Lengths of all documents, each the sum of its sequences. Cost as above.
///
/// @throws format_error  a length is negative, or the document index does not ascend.
length_statistics document_lengths(const indexed_dataset& data);

// ---------------------------------------------------------------------------------------------

namespace detail {

/// The k-th smallest, from 0, of value(0), ..., value(count - 1): 16 bits a pass, the highest
/// first, as an index may have more entries than fit memory.
///
/// @pre 0 <= k < count, and all values are in 0 .. max.
template <class Value>
std::int64_t nth_smallest(std::int64_t count, const Value& value, std::int64_t k,
                          std::int64_t max) {
  std::uint64_t known = 0;  // the digits found so far
  int shift =
      16 *
      (std::max(static_cast<int>(std::bit_width(static_cast<std::uint64_t>(max))) - 1, 0) / 16);
  for (; shift >= 0; shift -= 16) {
    std::vector<std::int64_t> counts(1 << 16);
    for (std::int64_t i = 0; i < count; ++i) {
      const auto v = static_cast<std::uint64_t>(value(i));
      if ((v ^ known) >> shift >> 16 == 0) ++counts[(v >> shift) & 0xffff];
    }
    std::size_t digit = 0;
    while (k >= counts[digit]) k -= counts[digit++];
    known |= static_cast<std::uint64_t>(digit) << shift;
  }
  return static_cast<std::int64_t>(known);
}

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

inline length_statistics sequence_lengths(const indexed_dataset& data) {
  return detail::summarise(data.sequence_count(),
                           [&](std::int64_t i) { return data.sequence_length(i); });
}

inline length_statistics document_lengths(const indexed_dataset& data) {
  return detail::summarise(data.document_count(), [&](std::int64_t d) {
    const document_range range = data.document(d);
    std::int64_t length = 0;  // < 2^31 each, and no file holds 2^32 of them
    for (std::int64_t i = range.first; i < range.last; ++i) length += data.sequence_length(i);
    return length;
  });
}

}  // namespace millrace::dataset
