// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <millrace/error.hpp>
#include <millrace/loader/cuda/detail/batch_tile.hpp>
#include <millrace/loader/cuda/detail/batch_work.hpp>
#include <millrace/loader/detail/batch/slot_layout.hpp>
#include <millrace/loader/detail/ranks/context_slices.hpp>

namespace millrace::loader::cuda {

/// The arrays that a batch has, and their types.
struct wanted_fields {
  bool tokens = true;
  bool labels = true;
  bool position_ids = true;
  bool loss_mask = true;
  bool cu_seqlens = true;
  /// Packed rows only. The same array. If both are wanted, `cu_seqlens` does not count padding.
  bool cu_seqlens_padded = false;
  bool segment_ids = false;
  id_width ids = id_width::i64;  ///< of tokens, labels and position ids
  /// Number of entries of both arrays, for consumers that need static shapes. Unused entries repeat
  /// the last used entry. If 0, each batch has as many entries as it needs.
  std::int64_t cu_seqlens_size = 0;
};

/// Byte offsets of a batch's arrays in the single memory block of its slot. They are multiples of
/// 256. An array that is not requested has the offset `none`.
class output_layout {
 public:
  static constexpr std::size_t alignment = 256;
  static constexpr std::size_t none = static_cast<std::size_t>(-1);

  /// @param largest  the layout of the largest batch that must fit
  /// @throws config_error  `cu_seqlens_size` is out of range; or the rows are not packed, and
  /// either
  ///                       `cu_seqlens_padded` is requested, or `cu_seqlens` is and context
  ///                       parallelism cuts the rows
  output_layout(const slot_layout& largest, const wanted_fields& wanted)
      : ids_(wanted.ids), cu_seqlens_size_(wanted.cu_seqlens_size) {
    constexpr std::int64_t most = std::int64_t{1} << 31;  // rows * seq_len is less
    if (cu_seqlens_size_ != 0 && (cu_seqlens_size_ < 2 || cu_seqlens_size_ > most)) {
      throw config_error("cu_seqlens_size is " + std::to_string(cu_seqlens_size_) +
                         ", expected 0 or 2 to " + std::to_string(most));
    }
    if (largest.cut() && !largest.packed() && wanted.cu_seqlens) {
      refuse_cut_cu_seqlens(largest.context_parallel());
    }
    if (!largest.packed() && wanted.cu_seqlens_padded) refuse_padded_cu_seqlens();
    const auto elements = static_cast<std::size_t>(largest.rows() * largest.seq_len());
    const std::size_t id_bytes = elements * static_cast<std::size_t>(ids_);
    const std::size_t entries =
        cu_seqlens_size_ == 0 ? elements + 1 : static_cast<std::size_t>(cu_seqlens_size_);
    // A row needs one mark per `tile_tokens` tokens, rounded up. Only rows longer than
    // `look_back_tokens` need marks. That limits the number of such rows, and so the number of
    // tiles that are not full.
    const std::size_t marks = elements / tile_tokens + elements / look_back_tokens + 1;
    const bool long_rows = elements > static_cast<std::size_t>(look_back_tokens);
    tokens_ = place(wanted.tokens, id_bytes);
    labels_ = place(wanted.labels, id_bytes);
    position_ids_ = place(wanted.position_ids, id_bytes);
    loss_mask_ = place(wanted.loss_mask, elements * sizeof(float));
    segment_ids_ = place(wanted.segment_ids, elements * sizeof(std::int32_t));
    cu_seqlens_ = place(wanted.cu_seqlens, entries * sizeof(std::int32_t));
    cu_seqlens_padded_ = place(wanted.cu_seqlens_padded, entries * sizeof(std::int32_t));
    marks_ = place(wanted.position_ids && long_rows, marks * sizeof(std::int32_t));
  }

  /// Size of the block; never 0.
  std::size_t bytes() const noexcept { return bytes_ == 0 ? alignment : bytes_; }

  /// Returns the description of how to fill the block `to` from the slot `from`.
  ///
  /// @param from        laid out as `layout`, in memory that is readable where the fields are made
  /// @param layout      the slot's layout, no larger than the layout given to the constructor
  /// @param boundaries  number of boundaries in the slot; if 0, the batch has neither cu_seqlens
  ///                    nor segment ids
  /// @param slices      number of entries of `slice_ends` in the slot
  batch_work work(std::byte* to, const std::byte* from, const slot_layout& layout,
                  std::int64_t boundaries, const batch_rules& rules,
                  std::int64_t slices = 0) const noexcept {
    batch_work work;
    work.text = from + layout.text_offset();
    work.real = at<const std::int32_t>(from, layout.real_offset());
    work.boundary_begin = at<const std::int32_t>(from, layout.boundary_begin_offset());
    work.boundaries = at<const std::int32_t>(from, layout.boundaries_offset());
    if (layout.packed()) {
      work.document_ends = at<const std::int32_t>(from, layout.document_ends_offset(boundaries));
      work.unpadded_ends = at<const std::int32_t>(from, layout.unpadded_ends_offset(boundaries));
    }
    if (layout.cut()) {
      const auto array = [&](int which) {
        return at<const std::int32_t>(from, layout.slices_offset(boundaries, slices, which));
      };
      const auto* const begin = at<const std::int32_t>(from, layout.slice_begin_offset(boundaries));
      work.slices = {slices, begin, array(0), array(1), array(2), array(3), array(4)};
      work.context_parallel = layout.context_parallel();
    }
    if (layout.masked()) {
      work.counted = at<const std::uint32_t>(from, layout.counted_offset(boundaries, slices));
      work.counted_words = layout.counted_words();
    }
    work.rows = layout.rows();
    work.seq_len = layout.seq_len();
    work.text_len = layout.text_len();
    work.boundary_count = boundaries;
    work.narrow = layout.width() == token_width::u16;
    work.ids = ids_;
    work.rules = rules;
    work.tokens = at<void>(to, tokens_);
    work.labels = at<void>(to, labels_);
    work.position_ids = at<void>(to, position_ids_);
    work.loss_mask = at<float>(to, loss_mask_);
    work.marks = at<std::int32_t>(to, marks_);
    if (boundaries == 0) return work;
    work.segment_ids = at<std::int32_t>(to, segment_ids_);
    work.cu_seqlens = at<std::int32_t>(to, cu_seqlens_);
    work.cu_seqlens_padded = at<std::int32_t>(to, cu_seqlens_padded_);
    if (!work.has_cu_seqlens()) return work;
    work.cu_seqlens_size = cu_seqlens_size_ == 0 ? work.cu_seqlens_used() : cu_seqlens_size_;
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

  id_width ids_;
  std::int64_t cu_seqlens_size_;
  std::size_t bytes_ = 0;
  std::size_t tokens_ = none;
  std::size_t labels_ = none;
  std::size_t position_ids_ = none;
  std::size_t loss_mask_ = none;
  std::size_t segment_ids_ = none;
  std::size_t cu_seqlens_ = none;
  std::size_t cu_seqlens_padded_ = none;
  std::size_t marks_ = none;
};

}  // namespace millrace::loader::cuda
