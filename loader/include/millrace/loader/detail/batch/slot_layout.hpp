// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <millrace/error.hpp>

namespace millrace::loader {

/// Token type of a slot: the type of the dataset if that is uint16 or int32, else int32.
enum class token_width : std::uint8_t { u16 = 2, i32 = 4 };

/// The layout of a micro-batch's arrays in its slot. The slot is one block of memory, so that a
/// single copy transfers all of it to a device.
///
///   text             u16 or i32 [rows, text_len]   the tokens, then zeros as padding
///   real             i32 [rows]                    tokens per row that are not padding
///   boundary_begin   i32 [rows + 1]                index of each row's first boundary, then the
///                                                  number of boundaries
///   boundaries       i32 [boundary_begin[rows]]    per row: 0, then the ends of its documents, of
///                                                  which the last is seq_len
///                                                  (`dataset::fill_cu_seqlens`)
///   document_ends    i32 [boundary_begin[rows]]    packed rows only: [i] is where, in the document
///                                                  that ends at boundaries[i], tokens end and
///                                                  padding begins; 0 if boundaries[i] is 0
///
/// The last two arrays have no unused entries, so a copy transfers little more than tokens. Rows
/// have no boundaries unless these were requested. Offsets are in bytes. The offsets of `text` and
/// `real` are multiples of 64, those of the other arrays multiples of 4.
class slot_layout {
 public:
  static constexpr std::size_t alignment = 64;

  /// @throws config_error  an argument is out of range, or the slot has more than 2^31 - 1 tokens
  slot_layout(std::int64_t rows, std::int64_t seq_len, bool extra_token, token_width width,
              bool packed = false)
      : rows_(rows),
        seq_len_(seq_len),
        text_len_(seq_len + (extra_token ? 1 : 0)),
        width_(width),
        packed_(packed) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    if (rows < 1 || seq_len < 1 || seq_len >= most || rows > most / (seq_len + 1)) {
      throw config_error("a micro-batch of " + std::to_string(rows) + " rows of " +
                         std::to_string(seq_len) +
                         " tokens, expected 1 to 2147483647 tokens in all");
    }
  }

  /// The same layout with fewer rows, or none, for a short last micro-batch.
  /// @pre 0 <= rows <= rows of the slot
  slot_layout with_rows(std::int64_t rows) const noexcept {
    slot_layout same = *this;
    same.rows_ = rows;
    return same;
  }

  std::int64_t rows() const noexcept { return rows_; }
  std::int64_t seq_len() const noexcept { return seq_len_; }
  /// Tokens per row: seq_len, plus 1 if the last label is an extra token.
  std::int64_t text_len() const noexcept { return text_len_; }
  bool extra_token() const noexcept { return text_len_ != seq_len_; }
  token_width width() const noexcept { return width_; }
  /// True if labels and positions restart with each document. The slot then has `document_ends`.
  bool packed() const noexcept { return packed_; }

  std::size_t row_bytes() const noexcept {
    return static_cast<std::size_t>(text_len_) * static_cast<std::size_t>(width_);
  }
  std::size_t text_offset() const noexcept { return 0; }
  std::size_t real_offset() const noexcept {
    return (count(rows_) * row_bytes() + alignment - 1) / alignment * alignment;
  }
  std::size_t boundary_begin_offset() const noexcept { return real_offset() + 4 * count(rows_); }
  std::size_t boundaries_offset() const noexcept {
    return boundary_begin_offset() + 4 * count(rows_ + 1);
  }
  /// Capacity of `boundaries`, in entries.
  std::int64_t most_boundaries() const noexcept { return rows_ * (seq_len_ + 1); }

  /// @param boundaries  number of entries in use
  std::size_t document_ends_offset(std::int64_t boundaries) const noexcept {
    return boundaries_offset() + 4 * count(boundaries);
  }

  /// Size of the slot's block, with space for the maximum number of boundaries.
  std::size_t capacity_bytes() const noexcept { return rounded(used_bytes(most_boundaries())); }
  /// Bytes in use, which are copied to a device.
  /// @param boundaries  number of entries in use
  std::size_t used_bytes(std::int64_t boundaries) const noexcept {
    return boundaries_offset() + 4 * count(boundaries) * (packed_ ? 2 : 1);
  }

 private:
  static std::size_t count(std::int64_t n) noexcept { return static_cast<std::size_t>(n); }
  static std::size_t rounded(std::size_t bytes) noexcept {
    return (bytes + alignment - 1) / alignment * alignment;
  }

  std::int64_t rows_;
  std::int64_t seq_len_;
  std::int64_t text_len_;
  token_width width_;
  bool packed_;
};

}  // namespace millrace::loader
