// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <millrace/dataset/detail/sample/fields.hpp>
#include <millrace/loader/detail/batch/slice_table.hpp>

namespace millrace::loader::detail {

/// Fills the fields of a context-parallel rank's row, slice by slice.
///
/// @param text     the tokens of the rank's row; as many as `out` has positions
/// @param options  `extra_token` is ignored, because `slices` has the label of each slice's last
///                 token
template <class Token, class Id>
void fill_sliced_fields(std::span<const Token> text, const row_slices& slices,
                        dataset::field_options options, const dataset::sample_fields<Id>& out) {
  options.extra_token = false;
  for (std::size_t s = 1; s < slices.ends.size(); ++s) {
    const std::int64_t first = slices.ends[s - 1];
    const std::int64_t count = slices.ends[s] - first;
    const auto part = dataset::part_of(out, first, count);
    const std::span own =
        text.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    const std::int64_t known = slices.real_ends[s] - first;
    const std::int64_t real = std::min(known, count);
    dataset::fill_fields<Token, Id>(own, real, count, options, part);
    if (known > count) {
      const dataset::sample_fields<Id> ids{part.tokens, part.labels, part.loss_mask, {}};
      dataset::detail::field_writer<Id> last(options, ids);
      last.put(count - 1, static_cast<std::int64_t>(own.back()), slices.next[s]);
    }
    if (part.position_ids.empty()) continue;
    const auto before = static_cast<Id>(first - slices.origins[s]);
    for (std::int64_t i = 0; i < count && before != 0; ++i) {  // stop after the first eod
      const auto at = static_cast<std::size_t>(i);
      part.position_ids[at] += before;
      const std::int64_t token = i < real ? static_cast<std::int64_t>(own[at]) : options.pad;
      if (options.reset_position_ids && token == options.eod) break;
    }
  }
}

}  // namespace millrace::loader::detail
