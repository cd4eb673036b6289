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
/// rows, which is usually `batch_size`. Without `drop_last`, the last batch may have fewer rows or
/// none. With context parallelism, a row is this rank's part of the sample, and has
/// `layout().seq_len()` tokens. Each token has the same field values as in the whole row.
///
///     std::optional<millrace::loader::batch> batch = loader.next();
///     if (batch) {
///       std::span<const std::int64_t> tokens = batch->tokens();  // [rows, seq_len]
///       std::span<const std::int64_t> labels = batch->labels();
///     }
///
/// A loader has a ring of slots; each slot is the memory of one batch. A batch holds its slot until
/// it is destroyed or assigned to. Until then its spans are valid, even if the batch is moved. A
/// batch may outlive the loader, and may be destroyed on any thread. A moved-from batch may only be
/// destroyed or assigned to.
class batch {
 public:
  // Host arrays. An array exists only if `loader_options::fields` requests it. All arrays are
  // [rows, seq_len], except for `cu_seqlens`.

  /// Input ids; 0 for padding.
  /// @throws config_error  the field was not requested; the same for all host arrays
  std::span<const std::int64_t> tokens() const {
    return asked<std::int64_t>(slot().tokens, "tokens");
  }
  /// The token after each input id; 0 if there is no next token.
  std::span<const std::int64_t> labels() const {
    return asked<std::int64_t>(slot().labels, "labels");
  }
  /// 1 if the token counts in the loss, else 0.
  std::span<const float> loss_mask() const { return asked<float>(slot().loss_mask, "loss_mask"); }
  std::span<const std::int64_t> position_ids() const {
    return asked<std::int64_t>(slot().position_ids, "position_ids");
  }
  /// Document boundaries for attention kernels, as offsets into the concatenated rows. They ascend
  /// from 0 to rows * seq_len, without duplicates. If there are no rows, the only entry is 0. The
  /// longest document has `max_seqlen()` tokens. With context parallelism, every rank gets the
  /// boundaries and `max_seqlen()` of whole rows, as Transformer Engine expects.
  ///
  /// In packed rows, a document includes its padding. If `cu_seqlens_padded` is requested, too,
  /// this is an array without padding, of the same size: the lengths of the documents, added up.
  /// The two are then the arrays of these names in Transformer Engine.
  std::span<const std::int32_t> cu_seqlens() const {
    return asked<std::int32_t>(slot().cu_seqlens, "cu_seqlens");
  }
  /// Packed rows only: the boundaries of documents with their padding.
  std::span<const std::int32_t> cu_seqlens_padded() const {
    return asked<std::int32_t>(slot().cu_seqlens_padded, "cu_seqlens_padded");
  }
  /// Tokens of the longest document, including its padding.
  std::int32_t max_seqlen() const noexcept { return slot().max_seqlen; }

  // The place of the batch in the run.

  /// Index of the step in the run, index of this micro-batch in the step, and number of
  /// micro-batches in the step. Both indices count from 0.
  std::int64_t step() const noexcept { return slot().number.step; }
  std::int64_t micro_batch() const noexcept { return slot().number.micro_batch; }
  std::int64_t micro_batches() const noexcept { return slot().number.micro_batches; }
  /// Number of the sample in row 0: samples are numbered from 0 in the order in which all ranks
  /// together serve them, from the start of the run. Row i holds sample first_sample() + i.
  std::int64_t first_sample() const noexcept { return slot().number.first_sample; }
  /// The position of each row's sample in the run as it would be without edits, [rows].
  std::span<const std::int64_t> positions() const noexcept { return slot().positions; }
  /// Index of the source of each row, [rows].
  std::span<const std::int64_t> sources() const noexcept { return slot().sources; }

  // The arrays of the slot, in the layout that is copied to a device. Tokens have the slot's type.

  const slot_layout& layout() const noexcept { return slot().layout; }
  /// All arrays of the slot in one block, so that a single copy transfers them. `slot_layout`
  /// describes the block.
  std::span<const std::byte> bytes() const noexcept {
    return {slot().block.get(), slot().layout.used_bytes(slot().boundaries, slot().slices)};
  }
  /// Tokens, [rows, layout().text_len()]; 0 for padding.
  /// @throws config_error  `Token` is not the slot's token type (`std::uint16_t` or `std::int32_t`)
  template <class Token>
  std::span<const Token> text() const;
  /// For each row, the number of tokens that are not padding, [rows]. With context parallelism, a
  /// token that is only a label does not count.
  std::span<const std::int32_t> real() const noexcept { return slot().real(); }
  /// An array of [rows + 1]. For each row, it has the index of the row's first boundary in
  /// `boundaries()`. The last entry is the total number of boundaries.
  std::span<const std::int32_t> boundary_begin() const noexcept { return slot().boundary_begin(); }
  /// The boundaries of all rows, row by row. For each row, they are 0 and then the ends of its
  /// documents; the last end is seq_len. Empty if boundaries were not requested.
  std::span<const std::int32_t> boundaries() const noexcept { return slot().all_boundaries(); }
  /// Packed rows only. For each boundary, the entry is the offset in the row at which the padding
  /// begins in the document that ends at the boundary.
  std::span<const std::int32_t> document_ends() const noexcept { return slot().document_ends(); }
  /// Packed rows only: the array `unpadded_ends` of `slot_layout`.
  std::span<const std::int32_t> unpadded_ends() const noexcept { return slot().unpadded_ends(); }
  /// Context parallelism only: the array `slice_ends` of `slot_layout`. For each row, it has 0 and
  /// then the ends of the row's slices.
  std::span<const std::int32_t> slices() const noexcept { return slot().slice_arrays().ends; }

  /// A pointer that keeps the memory of all slots of the loader allocated. While it exists, the
  /// arrays of a destroyed batch may still be read, but a later batch may have overwritten them.
  std::shared_ptr<const void> memory() const noexcept { return slot_.get_deleter().ring; }

 private:
  friend class batch_loader;
  friend class batch_reader;
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
