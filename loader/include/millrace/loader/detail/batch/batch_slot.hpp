// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include <millrace/dataset/sampler.hpp>
#include <millrace/loader/detail/batch/slice_table.hpp>
#include <millrace/loader/detail/batch/slot_layout.hpp>
#include <millrace/loader/detail/batch/slot_memory.hpp>

namespace millrace::loader::detail {

/// The memory and the metadata of one micro-batch. One thread fills the slot; after that, only the
/// holder of the batch reads the slot.
struct batch_slot {
  batch_slot(const slot_layout& shape, memory_block memory)
      : layout(shape), block(std::move(memory)) {}

  slot_layout layout;
  memory_block block;           // size: layout.capacity_bytes()
  std::int64_t boundaries = 0;  // number of boundaries in `block`
  std::int64_t slices = 0;      // number of entries in `slice_ends`
  dataset::batch_number number;
  std::vector<std::int64_t> positions;  // [rows]
  std::vector<std::int64_t> sources;    // [rows]

  // Host fields. A field that was not requested is empty. The four spans are parts of `host_block`.
  memory_block host_block;
  std::span<std::int64_t> tokens;        // [rows, seq_len]
  std::span<std::int64_t> labels;        // [rows, seq_len]
  std::span<std::int64_t> position_ids;  // [rows, seq_len]
  std::span<float> loss_mask;            // [rows, seq_len]
  std::vector<std::int32_t> cu_seqlens;
  std::vector<std::int32_t> cu_seqlens_padded;
  std::int32_t max_seqlen = 0;

  /// Sets the number of rows.
  /// @pre the slot has memory for that many rows
  void set_rows(std::int64_t rows) {
    if (rows == layout.rows()) return;
    layout = layout.with_rows(rows);
    const auto size = static_cast<std::size_t>(rows * layout.seq_len());
    for (auto* ids : {&tokens, &labels, &position_ids}) {
      if (ids->data() != nullptr) *ids = {ids->data(), size};
    }
    if (loss_mask.data() != nullptr) loss_mask = {loss_mask.data(), size};
  }

  template <class T>
  std::span<T> array(std::size_t offset, std::int64_t size) const noexcept {
    return {reinterpret_cast<T*>(block.get() + offset), static_cast<std::size_t>(size)};
  }
  std::byte* row(std::int64_t r) const noexcept {
    return block.get() + layout.text_offset() + static_cast<std::size_t>(r) * layout.row_bytes();
  }
  std::span<std::int32_t> real() const noexcept {
    return array<std::int32_t>(layout.real_offset(), layout.rows());
  }
  std::span<std::int32_t> boundary_begin() const noexcept {
    return array<std::int32_t>(layout.boundary_begin_offset(), layout.rows() + 1);
  }
  std::span<std::int32_t> all_boundaries() const noexcept {
    return array<std::int32_t>(layout.boundaries_offset(), boundaries);
  }
  std::span<std::int32_t> document_ends() const noexcept {
    return array<std::int32_t>(layout.document_ends_offset(boundaries),
                               layout.packed() ? boundaries : 0);
  }
  std::span<std::int32_t> unpadded_ends() const noexcept {
    return array<std::int32_t>(layout.unpadded_ends_offset(boundaries),
                               layout.packed() ? boundaries : 0);
  }
  std::span<std::int32_t> slice_begin() const noexcept {
    return array<std::int32_t>(layout.slice_begin_offset(boundaries),
                               layout.cut() ? layout.rows() + 1 : 0);
  }
  /// Call this after `boundaries` and `slices` were set. Empty if the layout is not masked.
  std::span<std::uint32_t> counted() const noexcept {
    return array<std::uint32_t>(layout.counted_offset(boundaries, slices),
                                layout.rows() * layout.counted_words());
  }
  slice_table slice_arrays() const noexcept {
    const auto table = [&](int which) {
      return array<std::int32_t>(layout.slices_offset(boundaries, slices, which), slices);
    };
    return {table(0), table(1), table(2), table(3), table(4)};
  }
};

}  // namespace millrace::loader::detail
