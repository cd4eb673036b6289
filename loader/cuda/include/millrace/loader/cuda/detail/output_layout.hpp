// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include <millrace/loader/cuda/detail/batch_work.hpp>
#include <millrace/loader/detail/batch/slot_layout.hpp>

namespace millrace::loader::cuda {

/// The arrays that a batch has.
struct wanted_fields {
  bool tokens = true;
  bool labels = true;
  bool position_ids = true;
  bool loss_mask = true;
  bool cu_seqlens = true;
};

/// Offsets of a batch's arrays in its slot's single memory block, in bytes. They are multiples of
/// 256; an array that is not requested has the offset `none`.
class output_layout {
 public:
  static constexpr std::size_t alignment = 256;
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// @param largest  the layout of the largest batch that must fit
  output_layout(const slot_layout& largest, const wanted_fields& wanted) {
    const auto elements = static_cast<std::size_t>(largest.rows() * largest.seq_len());
    tokens_ = place(wanted.tokens, elements * sizeof(std::int64_t));
    labels_ = place(wanted.labels, elements * sizeof(std::int64_t));
    position_ids_ = place(wanted.position_ids, elements * sizeof(std::int64_t));
    loss_mask_ = place(wanted.loss_mask, elements * sizeof(float));
    cu_seqlens_ = place(wanted.cu_seqlens, (elements + 1) * sizeof(std::int32_t));
  }

  /// Size of the block; never 0.
  std::size_t bytes() const noexcept { return bytes_ == 0 ? alignment : bytes_; }

  /// Returns the description of how to fill the block `to` from the slot `from`.
  ///
  /// @param from        laid out as `layout`, in memory that is readable where the fields are made
  /// @param layout      the slot's layout, no larger than the largest
  /// @param boundaries  number of boundaries in the slot; if 0, there are no cu_seqlens
  batch_work work(std::byte* to, const std::byte* from, const slot_layout& layout,
                  std::int64_t boundaries, const batch_rules& rules) const noexcept {
    batch_work work;
    work.text = from + layout.text_offset();
    work.real = at<const std::int32_t>(from, layout.real_offset());
    work.boundary_begin = at<const std::int32_t>(from, layout.boundary_begin_offset());
    work.boundaries = at<const std::int32_t>(from, layout.boundaries_offset());
    if (layout.packed()) {
      work.document_ends = at<const std::int32_t>(from, layout.document_ends_offset(boundaries));
    }
    work.rows = layout.rows();
    work.seq_len = layout.seq_len();
    work.text_len = layout.text_len();
    work.narrow = layout.width() == token_width::u16;
    work.rules = rules;
    work.tokens = at<std::int64_t>(to, tokens_);
    work.labels = at<std::int64_t>(to, labels_);
    work.position_ids = at<std::int64_t>(to, position_ids_);
    work.loss_mask = at<float>(to, loss_mask_);
    if (boundaries > 0) work.cu_seqlens = at<std::int32_t>(to, cu_seqlens_);
    return work;
  }

 private:
  std::size_t place(bool wanted, std::size_t bytes) noexcept {
    if (!wanted) return none;
    const std::size_t offset = bytes_;
    bytes_ += (bytes + alignment - 1) / alignment * alignment;
    return offset;
  }

  // Blocks are aligned for every type that they contain.
  template <class T, class Byte>
  static T* at(Byte* block, std::size_t offset) noexcept {
    return offset == none ? nullptr : reinterpret_cast<T*>(block + offset);
  }

  std::size_t bytes_ = 0;
  std::size_t tokens_ = none;
  std::size_t labels_ = none;
  std::size_t position_ids_ = none;
  std::size_t loss_mask_ = none;
  std::size_t cu_seqlens_ = none;
};

}  // namespace millrace::loader::cuda
