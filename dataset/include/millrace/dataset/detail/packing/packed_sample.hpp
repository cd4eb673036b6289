// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/packing/block_layout.hpp>
#include <millrace/dataset/detail/sample/cu_seqlens.hpp>
#include <millrace/dataset/detail/sample/fields.hpp>
#include <millrace/dataset/detail/sample/gather.hpp>
#include <millrace/dataset/detail/sample/piece.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/error.hpp>

/// A packed row as a sample. Its text has seq_len tokens. The text consists of the parts, each
/// padded to a multiple of pad_documents_to, and of padding up to seq_len. Labels never cross from
/// one part into the next, so the last token of each part has no label and no loss. Positions
/// restart at 0 with each part.
///
///   parts of 3 and 5 tokens, pad_documents_to 4, seq_len 16
///
///   text         a a a . b b b b b . . . . . . .
///   labels       a a . . b b b b . . . . . . . .
///   cu_seqlens   0       4                       16       the last part includes the end padding
namespace millrace::dataset {

/// Positions that a part occupies in a row, including its padding.
/// @param last_token_as_label  see `packed_options`
inline std::int64_t share_of(const packed_part& part, std::int64_t pad_documents_to,
                             bool last_token_as_label = false) noexcept {
  const std::int64_t positions = part.tokens - (last_token_as_label ? 1 : 0);
  return (positions + pad_documents_to - 1) / pad_documents_to * pad_documents_to;
}

/// Appends the pieces of a part: one piece for each sequence that the part overlaps.
///
/// @throws format_error  the document is too short for the part, or its index entries are invalid
/// @throws io_error
MILLRACE_EXPORT void append_pieces(const index_columns& columns, const packed_part& part,
                                   std::vector<piece>& pieces);

/// Fills `out`, [seq_len], with the text of a row. The padding is `pad`, or 0 if T cannot represent
/// `pad` (as in `gather`).
///
/// @param pieces  scratch
/// @throws format_error, config_error  as for `gather` and `append_pieces`.
template <class T>
void gather_packed(const indexed_dataset& data, std::span<const packed_part> parts,
                   std::int64_t pad_documents_to, std::span<T> out, std::vector<piece>& pieces,
                   std::int64_t pad = -1);

/// Fills `out`, [seq_len + 1], with the boundaries of the padded parts, as in `fill_cu_seqlens`.
MILLRACE_EXPORT cu_seqlens_size fill_packed_cu_seqlens(std::span<const packed_part> parts,
                                                       std::int64_t seq_len,
                                                       std::int64_t pad_documents_to,
                                                       std::span<std::int32_t> out);

/// Fills in the fields of a row from its text. Each field has seq_len entries.
/// @pre !options.extra_token
template <class Token, class Id>
void fill_packed_fields(std::span<const Token> text, std::span<const packed_part> parts,
                        std::int64_t pad_documents_to, const field_options& options,
                        const sample_fields<Id>& out);

// ---------------------------------------------------------------------------------------------

template <class T>
void gather_packed(const indexed_dataset& data, std::span<const packed_part> parts,
                   std::int64_t pad_documents_to, std::span<T> out, std::vector<piece>& pieces,
                   std::int64_t pad) {
  const index_columns columns(data);
  std::size_t at = 0;
  for (const packed_part& part : parts) {
    pieces.clear();
    append_pieces(columns, part, pieces);
    const auto share = static_cast<std::size_t>(share_of(part, pad_documents_to));
    if (share > out.size() - at) {
      throw config_error("the documents of a packed row have more tokens than the " +
                         std::to_string(out.size()) + " that fit in the row");
    }
    (void)gather(data, pieces, out.subspan(at, share), pad);
    at += share;
  }
  std::ranges::fill(out.subspan(at), detail::id_or_zero<T>(pad));
}

template <class Token, class Id>
void fill_packed_fields(std::span<const Token> text, std::span<const packed_part> parts,
                        std::int64_t pad_documents_to, const field_options& options,
                        const sample_fields<Id>& out) {
  assert(!options.extra_token);
  const auto seq_len = static_cast<std::int64_t>(text.size());
  std::int64_t at = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t share =
        i + 1 < parts.size() ? share_of(parts[i], pad_documents_to) : seq_len - at;
    fill_fields(text.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(share)),
                parts[i].tokens, share, options, part_of(out, at, share));
    at += share;
  }
}

}  // namespace millrace::dataset
