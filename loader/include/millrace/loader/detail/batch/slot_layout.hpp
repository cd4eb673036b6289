// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>

#include <millrace/error.hpp>

namespace millrace::loader {

/// Token type of a slot: the dataset's own type if it is uint16 or int32, else int32.
enum class token_width : std::uint8_t { u16 = 2, i32 = 4 };

/// The layout of a micro-batch's arrays in its slot. The slot is one block of memory, so that a
/// single copy transfers all of it to a device.
///
///   text             u16 or i32 [rows, text_len]   the tokens, then zeros as padding
///   real             i32 [rows]                    number of tokens per row, without padding
///   boundary_begin   i32 [rows + 1]                index of each row's first boundary, then the
///                                                  number of boundaries
///   boundaries       i32 [boundary_begin[rows]]    per row: 0, then the ends of its documents; the
///                                                  last end is seq_len
///                                                  (`dataset::fill_cu_seqlens`)
///   document_ends    i32 [boundary_begin[rows]]    packed rows only: where the padding of each
///                                                  document begins in the row. [i] is for the
///                                                  document that ends at boundaries[i]; it is 0
///                                                  if boundaries[i] is 0
///   unpadded_ends    i32 [boundary_begin[rows]]    packed rows only: [i] is the number of tokens
///                                                  before boundaries[i] that are not padding, in
///                                                  this row and all rows before it
///
/// With context parallelism (CP ranks), `text` has only this rank's tokens, and seq_len is 1 / CP
/// of the length of a whole row. The arrays of boundaries are those of whole rows. The slot
/// also has a table of slices: six more arrays. A slice is a contiguous range of the whole row
/// whose tokens are also contiguous in this rank's row. If the row has boundaries, a slice lies
/// within one document. Packed rows whose documents' last tokens are only labels
/// (`dataset::packed_options`) have this table, too, because those tokens are not in `text`.
///
///   slice_begin      i32 [rows + 1]                like boundary_begin, for the arrays below
///   slice_ends       i32 [slice_begin[rows]]       per row: 0, then the ends of its slices; the
///                                                  last is seq_len
///   slice_real_ends  i32 [slice_begin[rows]]       where the padding of each slice begins in this
///                                                  rank's row. [i] is for the slice that ends at
///                                                  slice_ends[i]; it is slice_ends[i] + 1 if the
///                                                  slice has no padding and its last token has a
///                                                  label
///   slice_next       i32 [slice_begin[rows]]       [i] is the label of the slice's last token: the
///                                                  next token of the whole row; 0 without a label
///   slice_origins    i32 [slice_begin[rows]]       [i] is the index in this rank's row at which
///                                                  position ids would be 0, counted back from the
///                                                  slice's first token; it may be negative.
///                                                  Position ids restart after an eod in the slice
///   slice_documents  i32 [slice_begin[rows]]       [i] is the number of the slice's document in
///                                                  the whole row, counted from 1
///
/// If the layout is masked, the slot also says where the masks of the datasets let a loss count:
///
///   counted          u32 [rows, counted_words]     bit i % 32 of word i / 32 of a row is for its
///                                                  position i; unused bits are 0
///
/// The arrays of boundaries and slices have no unused entries, so a copy transfers little more than
/// the tokens. Rows have boundaries only if the caller requested them. Offsets are in bytes. The
/// offsets of `text` and `real` are multiples of 64; the offsets of the other arrays are multiples
/// of 4.
class slot_layout {
 public:
  static constexpr std::size_t alignment = 64;

  /// @throws config_error  an argument is out of range, or whole rows have more than 2^31 - 1
  ///                       tokens
  ///
  /// @param seq_len      tokens per row of this rank
  /// @param extra_token  true if rows have one more token, the last label; false with context
  ///                     parallelism
  slot_layout(std::int64_t rows, std::int64_t seq_len, bool extra_token, token_width width,
              bool packed = false, std::int64_t context_parallel = 1, bool masked = false,
              bool last_token_as_label = false)
      : rows_(rows),
        seq_len_(seq_len),
        text_len_(seq_len + (extra_token ? 1 : 0)),
        context_parallel_(context_parallel),
        width_(width),
        packed_(packed),
        masked_(masked),
        cut_(context_parallel > 1 || last_token_as_label) {
    constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
    const bool has_whole =
        context_parallel >= 1 && seq_len >= 1 && seq_len < most / context_parallel;
    const std::int64_t whole = has_whole ? seq_len * context_parallel : seq_len;
    if (rows < 1 || !has_whole || rows > most / (whole + 1)) {
      throw config_error("a micro-batch of " + std::to_string(rows) + " rows of " +
                         std::to_string(whole) + " tokens, expected 1 to 2147483647 tokens in all");
    }
  }

  /// The same layout with fewer rows, possibly 0, for a last micro-batch that is not full.
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
  /// Number of ranks that share each row.
  std::int64_t context_parallel() const noexcept { return context_parallel_; }
  /// Tokens per whole row: the sum over the row's context-parallel ranks.
  std::int64_t whole_seq_len() const noexcept { return seq_len_ * context_parallel_; }
  /// True if the slot has the table of slices.
  bool cut() const noexcept { return cut_; }
  token_width width() const noexcept { return width_; }
  /// True if labels and positions restart with each document. The slot then has `document_ends` and
  /// `unpadded_ends`.
  bool packed() const noexcept { return packed_; }
  /// True if the slot has `counted`.
  bool masked() const noexcept { return masked_; }

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
  std::int64_t most_boundaries() const noexcept { return rows_ * (whole_seq_len() + 1); }
  /// Capacity of `slice_ends`, in entries.
  std::int64_t most_slices() const noexcept { return cut() ? rows_ * (seq_len_ + 1) : 0; }

  /// @param boundaries  number of entries in use
  std::size_t document_ends_offset(std::int64_t boundaries) const noexcept {
    return boundaries_offset() + 4 * count(boundaries);
  }

  std::size_t unpadded_ends_offset(std::int64_t boundaries) const noexcept {
    return boundaries_offset() + 4 * count(boundaries) * 2;
  }

  std::size_t slice_begin_offset(std::int64_t boundaries) const noexcept {
    return boundaries_offset() + 4 * count(boundaries) * (packed_ ? 3 : 1);
  }
  static constexpr int slice_arrays = 5;
  /// Offset of an array of slices. `which` is 0 for slice_ends, 1 for slice_real_ends, 2 for
  /// slice_next, 3 for slice_origins and 4 for slice_documents.
  ///
  /// @param slices  number of entries in use
  std::size_t slices_offset(std::int64_t boundaries, std::int64_t slices,
                            int which) const noexcept {
    return slice_begin_offset(boundaries) + 4 * count(rows_ + 1) +
           4 * count(slices) * static_cast<std::size_t>(which);
  }

  /// Size of the slot's block, with space for the maximum number of boundaries and slices.
  std::size_t capacity_bytes() const noexcept {
    return rounded(used_bytes(most_boundaries(), most_slices()));
  }
  /// Size of the part in use, in bytes. Only this part is copied to a device.
  ///
  /// @param boundaries  number of entries in use
  /// @param slices      number of entries of slice_ends in use; 0 if there are none
  std::size_t used_bytes(std::int64_t boundaries, std::int64_t slices = 0) const noexcept {
    return counted_offset(boundaries, slices) + 4 * count(rows_ * counted_words());
  }

  /// Words of a row of `counted`.
  std::int64_t counted_words() const noexcept { return masked_ ? (seq_len_ + 31) / 32 : 0; }
  std::size_t counted_offset(std::int64_t boundaries, std::int64_t slices = 0) const noexcept {
    return cut() ? slices_offset(boundaries, slices, slice_arrays) : slice_begin_offset(boundaries);
  }

 private:
  static std::size_t count(std::int64_t n) noexcept { return static_cast<std::size_t>(n); }
  static std::size_t rounded(std::size_t bytes) noexcept {
    return (bytes + alignment - 1) / alignment * alignment;
  }

  std::int64_t rows_;
  std::int64_t seq_len_;
  std::int64_t text_len_;
  std::int64_t context_parallel_;
  token_width width_;
  bool packed_;
  bool masked_;
  bool cut_;
};

}  // namespace millrace::loader
