// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/loader/detail/batch/batch_slot.hpp>
#include <millrace/loader/detail/batch/slot_ring.hpp>

// Example:
//
//     // Row 2 of a batch.
//     const auto row = [](const millrace::loader::batch& batch) {
//       const auto seq_len = static_cast<std::size_t>(batch.layout().seq_len());
//       return batch.tokens().subspan(2 * seq_len, seq_len);
//     };

namespace millrace::loader {

/// One micro-batch. Arrays are row-major, with one row per sample. There are `layout().rows()`
/// rows: batch_size, or fewer (possibly 0) in a short last batch without `drop_last`. With context
/// parallelism, a row is this rank's part of the sample, of `layout().seq_len()` tokens. Its fields
/// are those of the whole row at the same places.
///
///     std::optional<millrace::loader::batch> batch = loader.next();
///     if (batch) {
///       std::span<const std::int64_t> tokens = batch->tokens();  // [rows, seq_len]
///       std::span<const std::int64_t> labels = batch->labels();
///     }
///
/// A batch holds one slot (the memory of one batch) of its loader's ring until it is destroyed or
/// assigned to. Its spans are valid for that long, even after it is moved. It may outlive the
/// loader and be destroyed on any thread. A batch that was moved from may only be destroyed or
/// assigned to.
class batch {
 public:
  // Host arrays. Each exists only if it was requested in `loader_options::fields`. Their shape is
  // [rows, seq_len], except for cu_seqlens.

  /// Input ids; 0 for padding.
  /// @throws config_error  the field was not requested. This applies to all fields below.
  std::span<const std::int64_t> tokens() const {
    return asked<std::int64_t>(slot().tokens, "tokens");
  }
  /// The token after each input id; 0 if there is none.
  std::span<const std::int64_t> labels() const {
    return asked<std::int64_t>(slot().labels, "labels");
  }
  /// 1 if the token counts in the loss, else 0.
  std::span<const float> loss_mask() const { return asked<float>(slot().loss_mask, "loss_mask"); }
  std::span<const std::int64_t> position_ids() const {
    return asked<std::int64_t>(slot().position_ids, "position_ids");
  }
  /// Document boundaries of all rows, concatenated, for attention kernels: ascending offsets from 0
  /// to rows * seq_len, without duplicates; a single 0 if there are no rows. The longest document
  /// has `max_seqlen()` tokens. With context parallelism, both are those of whole rows on every
  /// rank, as Transformer Engine takes them.
  std::span<const std::int32_t> cu_seqlens() const {
    return asked<std::int32_t>(slot().cu_seqlens, "cu_seqlens");
  }
  std::int32_t max_seqlen() const noexcept { return slot().max_seqlen; }

  // The place of the batch in the run.

  /// Index of the step in the run, index of this micro-batch in the step, and number of
  /// micro-batches in the step. Both indices count from 0.
  std::int64_t step() const noexcept { return slot().number.step; }
  std::int64_t micro_batch() const noexcept { return slot().number.micro_batch; }
  std::int64_t micro_batches() const noexcept { return slot().number.micro_batches; }
  /// Index of row 0's sample among the samples served, counted over all ranks from the start of the
  /// run. Row i holds sample first_sample() + i.
  std::int64_t first_sample() const noexcept { return slot().number.first_sample; }
  /// For each row, the position of its sample in the run without edits, [rows].
  std::span<const std::int64_t> positions() const noexcept { return slot().positions; }
  /// Index of the source of each row, [rows].
  std::span<const std::int64_t> sources() const noexcept { return slot().sources; }

  // The batch's tokens in the token type of the slot, laid out as they are copied to a device.

  const slot_layout& layout() const noexcept { return slot().layout; }
  /// The arrays text, real, boundary_begin, boundaries, document_ends and those of slices in one
  /// block, as described in `slot_layout`, so that a single copy transfers them.
  std::span<const std::byte> bytes() const noexcept {
    return {slot().block.get(), slot().layout.used_bytes(slot().boundaries, slot().slices)};
  }
  /// Tokens, [rows, layout().text_len()]; 0 for padding.
  /// @throws config_error  Token is not the token type of the slots (uint16 or int32)
  template <class Token>
  std::span<const Token> text() const;
  /// Number of tokens in each row that are not padding, [rows]; without its last label if context
  /// parallelism divides the row.
  std::span<const std::int32_t> real() const noexcept { return slot().real(); }
  /// For each row, the index of its first boundary in `boundaries()`, and last the number of all
  /// boundaries, [rows + 1].
  std::span<const std::int32_t> boundary_begin() const noexcept { return slot().boundary_begin(); }
  /// The boundaries of all rows, row by row. The boundaries of a row are 0 and the ends of its
  /// documents; the last end is seq_len. Empty if boundaries were not requested.
  std::span<const std::int32_t> boundaries() const noexcept { return slot().all_boundaries(); }
  /// Packed rows only: for each boundary, the offset at which the tokens of the preceding document
  /// end and its padding begins.
  std::span<const std::int32_t> document_ends() const noexcept { return slot().document_ends(); }
  /// Context parallelism only: for each row 0 and the ends of its slices, as `slice_ends` in
  /// `slot_layout`.
  std::span<const std::int32_t> slices() const noexcept { return slot().slice_arrays().ends; }

  /// An owner of the memory of all slots of the loader. While it exists, the arrays of a destroyed
  /// batch can be read, but a later batch may be written to them.
  std::shared_ptr<const void> memory() const noexcept { return slot_.get_deleter().ring; }

 private:
  friend class batch_loader;
  using slots = slot_ring<detail::batch_slot>;

  // The ring owns the memory, so each batch keeps the ring alive.
  struct give_back {
    std::shared_ptr<slots> ring;
    void operator()(detail::batch_slot* slot) const noexcept { ring->release(slot); }
  };

  batch(std::shared_ptr<slots> ring, detail::batch_slot* slot) noexcept
      : slot_(slot, give_back{std::move(ring)}) {}

  const detail::batch_slot& slot() const noexcept {
    assert(slot_ != nullptr);
    return *slot_;
  }

  template <class T>
  static std::span<const T> asked(std::span<const T> field, const char* name) {
    if (field.data() != nullptr) return field;  // not null even in a batch without rows
    throw config_error(std::string(name) + " of a batch was not made: set fields." + name +
                       " of the loader's options");
  }

  std::unique_ptr<detail::batch_slot, give_back> slot_;
};

// ---------------------------------------------------------------------------------------------

template <class Token>
std::span<const Token> batch::text() const {
  static_assert(std::is_same_v<Token, std::uint16_t> || std::is_same_v<Token, std::int32_t>);
  const slot_layout& layout = slot().layout;
  if (static_cast<std::size_t>(layout.width()) != sizeof(Token)) {
    throw config_error("the text of the batch is in " +
                       std::to_string(8 * static_cast<int>(layout.width())) +
                       " bits, requested in " + std::to_string(8 * sizeof(Token)));
  }
  return slot().array<const Token>(layout.text_offset(), layout.rows() * layout.text_len());
}

}  // namespace millrace::loader
