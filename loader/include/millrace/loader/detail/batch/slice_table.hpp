// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace millrace::loader::detail {

/// The table of slices of a slot, or one row's entries in the table (`slot_layout`).
///
/// @tparam Integer  std::int32_t, or const std::int32_t
template <class Integer>
struct slice_spans {
  std::span<Integer> ends;
  std::span<Integer> real_ends;
  std::span<Integer> next;
  std::span<Integer> origins;
  std::span<Integer> documents;

  slice_spans<const std::int32_t> of_row(std::int32_t first, std::int32_t last) const {
    const auto part = [&](std::span<const std::int32_t> all) {
      return all.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(last - first));
    };
    return {part(ends), part(real_ends), part(next), part(origins), part(documents)};
  }
};
using slice_table = slice_spans<std::int32_t>;
using row_slices = slice_spans<const std::int32_t>;

}  // namespace millrace::loader::detail
