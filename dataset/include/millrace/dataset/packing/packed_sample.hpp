// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/instant/index_columns.hpp>
#include <millrace/dataset/packing/block_layout.hpp>
#include <millrace/dataset/packing/document_lengths.hpp>
#include <millrace/dataset/sample/cu_seqlens.hpp>
#include <millrace/dataset/sample/fields.hpp>
#include <millrace/dataset/sample/gather.hpp>
#include <millrace/dataset/sample/piece.hpp>
#include <millrace/error.hpp>

/// A packed row as a sample. Its text has seq_len tokens: each part's, padded to its share, then
/// padding. Labels never cross from one part into the next, so that the last token of each part has
/// none and no loss; positions start anew with each part.
///
///   parts of 3 and 5 tokens, pad_documents_to 4, seq_len 16
///
///   text         a a a . b b b b b . . . . . . .
///   labels       a a . . b b b b . . . . . . . .
///   cu_seqlens   0       4                       16       padding at the end is the last part's
namespace millrace::dataset {

/// Tokens of a row that a part takes.
inline std::int64_t share_of(const packed_part& part, std::int64_t pad_documents_to) noexcept {
  return (part.tokens + pad_documents_to - 1) / pad_documents_to * pad_documents_to;
}

/// Appends the pieces of a part, one for each sequence of the document that it touches.
///
/// @throws format_error  the document is shorter than the part says, or the index is broken there;
///                       io_error
void append_pieces(const index_columns& columns, const packed_part& part,
                   std::vector<piece>& pieces);

/// The text of a row, [seq_len], and `pad` (or 0, as in `gather`) where no token is.
///
/// @param pieces  scratch
/// @throws format_error, config_error  as for `gather` and `append_pieces`.
template <class T>
void gather_packed(const indexed_dataset& data, std::span<const packed_part> parts,
                   std::int64_t pad_documents_to, std::span<T> out, std::vector<piece>& pieces,
                   std::int64_t pad = -1);

/// Boundaries of the parts' shares, [seq_len + 1], as `fill_cu_seqlens` fills them.
cu_seqlens_size fill_packed_cu_seqlens(std::span<const packed_part> parts, std::int64_t seq_len,
                                       std::int64_t pad_documents_to, std::span<std::int32_t> out);

/// The fields of a row out of its text, [seq_len] each. `options.extra_token` must be false.
template <class Token, class Id>
void fill_packed_fields(std::span<const Token> text, std::span<const packed_part> parts,
                        std::int64_t pad_documents_to, const field_options& options,
                        const sample_fields<Id>& out);

// ---------------------------------------------------------------------------------------------

inline void append_pieces(const index_columns& columns, const packed_part& part,
                          std::vector<piece>& pieces) {
  const document_range sequences = columns.document(part.document);
  if (sequences.size() == 1) {  // as nearly all are: there is nothing to look through
    const std::int64_t length = columns.sequence_length(sequences.first);
    if (part.tokens > 0 && part.first <= length && part.tokens <= length - part.first) {
      pieces.push_back({sequences.first, part.first, part.tokens});
      return;
    }
  }
  constexpr std::int64_t most = 1024;  // a part has seldom as many sequences
  const std::int64_t left = with_lengths(columns, sequences, most, [&](const auto& length_of) {
    std::int64_t skip = part.first;
    std::int64_t missing = part.tokens;
    for (std::int64_t i = sequences.first; i < sequences.last && missing > 0; ++i) {
      const std::int64_t length = length_of(i);
      if (skip >= length) {
        skip -= length;
        continue;
      }
      const std::int64_t tokens = std::min(missing, length - skip);
      pieces.push_back({i, skip, tokens});
      missing -= tokens;
      skip = 0;
    }
    return missing;
  });
  if (left > 0) {
    throw format_error(columns.idx_path(), columns.document_offset(part.document),
                       "document " + std::to_string(part.document) + " lacks " +
                           std::to_string(left) + " tokens, expected " +
                           std::to_string(part.tokens) + " from token " +
                           std::to_string(part.first) + " on");
  }
}

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
                         std::to_string(out.size()) + " of the text that it is to fill");
    }
    (void)gather(data, pieces, out.subspan(at, share), pad);
    at += share;
  }
  std::ranges::fill(out.subspan(at), detail::id_or_zero<T>(pad));
}

inline cu_seqlens_size fill_packed_cu_seqlens(std::span<const packed_part> parts,
                                              std::int64_t seq_len, std::int64_t pad_documents_to,
                                              std::span<std::int32_t> out) {
  assert(static_cast<std::int64_t>(out.size()) == seq_len + 1);
  cu_seqlens_size size{1, 0};
  std::int64_t at = 0;
  out[0] = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::int64_t begin = at;
    at = i + 1 < parts.size() ? at + share_of(parts[i], pad_documents_to) : seq_len;
    out[static_cast<std::size_t>(size.entries++)] = static_cast<std::int32_t>(at);
    size.max_seqlen = std::max(size.max_seqlen, static_cast<std::int32_t>(at - begin));
  }
  std::fill(out.begin() + size.entries, out.end(), static_cast<std::int32_t>(seq_len));
  return size;
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
