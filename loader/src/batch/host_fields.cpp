// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/batch/host_fields.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/sample/cu_seqlens.hpp>
#include <millrace/dataset/detail/sample/fields.hpp>
#include <millrace/loader/detail/batch/batch_slot.hpp>
#include <millrace/loader/detail/batch/wanted_fields.hpp>

namespace millrace::loader::detail {

MILLRACE_INLINE void place_host_fields(const host_fields& wanted, memory_block memory,
                                       batch_slot& slot) {
  slot.host_block = std::move(memory);
  const auto size = static_cast<std::size_t>(slot.layout.rows() * slot.layout.seq_len());
  std::byte* at = slot.host_block.get();
  const auto place = [&]<class T>(bool is_wanted, std::span<T>& field) {
    if (!is_wanted) return;
    field = {reinterpret_cast<T*>(at), size};
    at += field.size_bytes();
  };
  place(wanted.tokens, slot.tokens);
  place(wanted.labels, slot.labels);
  place(wanted.position_ids, slot.position_ids);
  place(wanted.loss_mask, slot.loss_mask);
}

MILLRACE_INLINE void join_boundaries(const host_fields& wanted, batch_slot& slot) {
  const std::span boundaries = slot.all_boundaries();
  const std::span begin = slot.boundary_begin();
  std::vector<std::int32_t>& padded =
      wanted.cu_seqlens_padded ? slot.cu_seqlens_padded : slot.cu_seqlens;
  padded.assign(1, 0);
  slot.max_seqlen = 0;
  if (wanted.cu_seqlens_padded) slot.cu_seqlens.assign(wanted.cu_seqlens ? 1 : 0, 0);
  for (std::size_t row = 0; row + 1 < begin.size(); ++row) {
    const auto offset =
        static_cast<std::int32_t>(row) * static_cast<std::int32_t>(slot.layout.whole_seq_len());
    for (std::int32_t i = begin[row] + 1; i < begin[row + 1]; ++i) {
      const std::int32_t at = offset + boundaries[static_cast<std::size_t>(i)];
      slot.max_seqlen = std::max(slot.max_seqlen, at - padded.back());
      padded.push_back(at);
      if (wanted.cu_seqlens && wanted.cu_seqlens_padded) {
        slot.cu_seqlens.push_back(slot.unpadded_ends()[static_cast<std::size_t>(i)]);
      }
    }
  }
}

MILLRACE_INLINE void fill_host_fields(const host_fields& wanted, host_field_rules rules,
                                      batch_slot& slot) {
  if (!wanted.any()) return;
  const slot_layout& layout = slot.layout;
  rules.options.extra_token = layout.extra_token();
  if (rules.positions_at_boundaries) rules.options.reset_position_ids = false;
  const dataset::sample_fields<> all{slot.tokens, slot.labels, slot.loss_mask, slot.position_ids};
  if (wanted.tokens || wanted.labels || wanted.loss_mask || wanted.position_ids) {
    for (std::int64_t row = 0; row < layout.rows(); ++row) {
      const auto out = dataset::part_of(all, row * layout.seq_len(), layout.seq_len());
      if (layout.width() == token_width::u16) {
        fill_row<std::uint16_t>(slot, row, rules.options, out);
      } else {
        fill_row<std::int32_t>(slot, row, rules.options, out);
      }
      if (layout.masked()) {
        apply_counted(slot.counted().data() + row * layout.counted_words(), out.loss_mask);
      }
      // With context parallelism, the slices already end at the boundaries.
      if (!rules.positions_at_boundaries || layout.cut() || out.position_ids.empty()) continue;
      const std::span begin = slot.boundary_begin();
      const auto r = static_cast<std::size_t>(row);
      const auto first = static_cast<std::size_t>(begin[r]);
      dataset::fill_position_ids<std::int64_t>(
          slot.all_boundaries().subspan(first, static_cast<std::size_t>(begin[r + 1]) - first),
          out.position_ids);
    }
  }
  if (wanted.has_cu_seqlens()) join_boundaries(wanted, slot);
}

}  // namespace millrace::loader::detail
