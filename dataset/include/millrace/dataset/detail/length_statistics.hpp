// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Statistics of a list of lengths, in tokens. All zero if the list is empty.
struct length_statistics {
  std::int64_t count = 0;  ///< number of lengths
  std::int64_t empty = 0;  ///< number of lengths that are 0
  std::int64_t min = 0;
  double median = 0;  ///< for an even count, the mean of the two middle lengths
  double mean = 0;
  std::int64_t max = 0;
};

/// Lengths of all sequences. Reads the `.idx` sequentially several times, in constant memory.
///
/// @throws format_error  a length is negative.
MILLRACE_EXPORT length_statistics sequence_lengths(const indexed_dataset& data);

/// Lengths of all documents. A document's length is the sum of its sequences' lengths. Same cost as
/// `sequence_lengths`.
///
/// @throws format_error  a length is negative, or the document index is not ascending.
MILLRACE_EXPORT length_statistics document_lengths(const indexed_dataset& data);

// ---------------------------------------------------------------------------------------------

namespace detail {

/// Returns the k-th smallest of value(0), ..., value(count - 1), with k counted from 0. Uses a
/// radix selection, 16 bits per pass, highest bits first, because an index may have more entries
/// than fit in memory.
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

}  // namespace detail

}  // namespace millrace::dataset
