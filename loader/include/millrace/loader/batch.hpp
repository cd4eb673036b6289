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
#include <millrace/loader/batch/batch_slot.hpp>
#include <millrace/loader/batch/slot_ring.hpp>

namespace millrace::loader {

/// One micro-batch. Arrays are row-major, a row for each sample: `layout().rows()` of them, which
/// is the batch_size of the options, or less in a last one that is short (`drop_last`), be it none.
///
/// It holds a slot of its loader's ring until it is destroyed or assigned to; the spans are valid
/// as long, moves included. It may outlive the loader and be destroyed on any thread. One that was
/// moved from holds nothing, and may only be destroyed or assigned to.
class batch {
 public:
  // Fields, [rows, seq_len], made where `loader_options::fields` asks for them.

  /// Input ids, int64; 0 where there is padding.
  /// @throws config_error  this field and those below: it was not asked for.
  std::span<const std::int64_t> tokens() const {
    return asked<std::int64_t>(slot().tokens, "tokens");
  }
  /// The token that follows each input id, int64; 0 where none does.
  std::span<const std::int64_t> labels() const {
    return asked<std::int64_t>(slot().labels, "labels");
  }
  /// 1 where the loss counts, else 0.
  std::span<const float> loss_mask() const { return asked<float>(slot().loss_mask, "loss_mask"); }
  std::span<const std::int64_t> position_ids() const {
    return asked<std::int64_t>(slot().position_ids, "position_ids");
  }
  /// Where documents begin and end if all rows are laid end to end: from 0 to rows * seq_len,
  /// each once, or 0 alone without rows. For attention kernels; the longest document is
  /// `max_seqlen()`.
  std::span<const std::int32_t> cu_seqlens() const {
    return asked<std::int32_t>(slot().cu_seqlens, "cu_seqlens");
  }
  std::int32_t max_seqlen() const noexcept { return slot().max_seqlen; }

  // Which one it is.

  /// Step of the run, from 0, and the number of this micro-batch in it, of `micro_batches()`.
  std::int64_t step() const noexcept { return slot().number.step; }
  std::int64_t micro_batch() const noexcept { return slot().number.micro_batch; }
  std::int64_t micro_batches() const noexcept { return slot().number.micro_batches; }
  /// Served sample in row 0; row i holds sample first_sample() + i. Counted from the start of the
  /// run, over all ranks.
  std::int64_t first_sample() const noexcept { return slot().number.first_sample; }
  /// Which sample of the run without edits, and of its source, each row is, [rows].
  std::span<const std::int64_t> positions() const noexcept { return slot().positions; }
  /// Which source of the run each row is of, [rows].
  std::span<const std::int64_t> sources() const noexcept { return slot().sources; }

  // Its text, in the type of the dataset: what is copied to a device.

  const slot_layout& layout() const noexcept { return slot().layout; }
  /// Text, real, boundary_begin, boundaries and document_ends, as `layout()` has them, one behind
  /// another: for one copy.
  std::span<const std::byte> bytes() const noexcept {
    return {slot().block.get(), slot().layout.used_bytes(slot().boundaries)};
  }
  /// [rows, layout().text_len()]; zeros where no token is.
  /// @throws config_error  Token is not the type that slots hold: uint16 or int32
  template <class Token>
  std::span<const Token> text() const;
  /// Tokens of each row that are the dataset's, [rows].
  std::span<const std::int32_t> real() const noexcept { return slot().real(); }
  /// Where the boundaries of each row begin, and the end, [rows + 1].
  std::span<const std::int32_t> boundary_begin() const noexcept { return slot().boundary_begin(); }
  /// Of each row 0, the ends of its documents, seq_len; none where nobody asked for them.
  std::span<const std::int32_t> boundaries() const noexcept { return slot().all_boundaries(); }
  /// Of packed rows, one for each boundary: where the tokens of the document before it end.
  std::span<const std::int32_t> document_ends() const noexcept { return slot().document_ends(); }

 private:
  friend class batch_loader;
  using slots = slot_ring<detail::batch_slot>;

  // The ring owns the memory, so each batch keeps the ring.
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
    if (field.data() != nullptr) return field;  // be it that of a batch without rows
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
