// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <millrace/dataset/detail/sample/fields.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/batch/batch_slot.hpp>
#include <millrace/loader/detail/batch/sliced_fields.hpp>
#include <millrace/loader/detail/batch/wanted_fields.hpp>

/// Makes the host fields of a batch (wanted_fields.hpp) from a slot that holds the batch's text.
namespace millrace::loader::detail {

/// Total size in bytes of one slot's requested arrays, which are contiguous.
inline std::size_t host_bytes(const host_fields& wanted, const slot_layout& layout) {
  const int ids = int{wanted.tokens} + int{wanted.labels} + int{wanted.position_ids};
  const auto size = static_cast<std::size_t>(layout.rows() * layout.seq_len());
  return size * (sizeof(std::int64_t) * static_cast<std::size_t>(ids) +
                 sizeof(float) * static_cast<std::size_t>(wanted.loss_mask));
}

/// Points the slot's host fields to `memory`, which the slot then owns.
/// @param memory  a block of host_bytes() bytes; null if host_bytes() is 0
MILLRACE_EXPORT void place_host_fields(const host_fields& wanted, memory_block memory,
                                       batch_slot& slot);

/// Allocates memory for the requested arrays of all slots of a ring.
/// @return one block per slot; all blocks are null if no array is requested
inline std::vector<memory_block> host_memory(const host_fields& wanted, const slot_layout& layout,
                                             std::size_t slots) {
  const std::size_t bytes = host_bytes(wanted, layout);
  return bytes == 0 ? std::vector<memory_block>(slots) : plain_memory(slots, bytes);
}

/// How host fields are made.
struct host_field_rules {
  dataset::field_options options;
  bool positions_at_boundaries = false;  ///< see `loader_options`
};

/// Sets the loss of a row to 0 where a bit of `counted` is 0.
inline void apply_counted(const std::uint32_t* counted, std::span<float> loss_mask) {
  for (std::size_t i = 0; i < loss_mask.size(); ++i) {
    loss_mask[i] = (counted[i / 32] >> (i % 32) & 1U) != 0 ? loss_mask[i] : 0.0F;
  }
}

/// Fills the fields of one row: a packed row document by document, a context-parallel rank's row
/// slice by slice. Ignores the option `positions_at_boundaries`, which `fill_host_fields` applies.
template <class Token>
void fill_row(const batch_slot& slot, std::int64_t row, const dataset::field_options& rules,
              const dataset::sample_fields<>& out) {
  const slot_layout& layout = slot.layout;
  const std::span text(reinterpret_cast<const Token*>(slot.row(row)),
                       static_cast<std::size_t>(layout.text_len()));
  const auto r = static_cast<std::size_t>(row);
  if (layout.cut()) {
    const std::span slices = slot.slice_begin();
    fill_sliced_fields<Token, std::int64_t>(
        text, slot.slice_arrays().of_row(slices[r], slices[r + 1]), rules, out);
    return;
  }
  if (!layout.packed()) {
    dataset::fill_fields<Token>(text, slot.real()[r], layout.seq_len(), rules, out);
    return;
  }
  const auto begin = static_cast<std::size_t>(slot.boundary_begin()[r]);
  const auto end = static_cast<std::size_t>(slot.boundary_begin()[r + 1]);
  for (std::size_t i = begin + 1; i < end; ++i) {
    const std::int32_t first = slot.all_boundaries()[i - 1];
    const std::int32_t share = slot.all_boundaries()[i] - first;
    dataset::fill_fields<Token>(
        text.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(share)),
        slot.document_ends()[i] - first, share, rules, dataset::part_of(out, first, share));
  }
}

/// Joins the boundaries of all rows into the requested arrays, like `dataset::join_cu_seqlens`.
MILLRACE_EXPORT void join_boundaries(const host_fields& wanted, batch_slot& slot);

MILLRACE_EXPORT void fill_host_fields(const host_fields& wanted, host_field_rules rules,
                                      batch_slot& slot);

}  // namespace millrace::loader::detail
