// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/instant/document_search.hpp>
#include <millrace/dataset/instant/index_columns.hpp>
#include <millrace/dataset/sample/cu_seqlens.hpp>
#include <millrace/dataset/sample/gather.hpp>
#include <millrace/dataset/sample/piece.hpp>
#include <millrace/export.hpp>
#include <millrace/loader/plan/sample_text.hpp>

namespace millrace::loader::detail {

/// Appends bytes of a file to a row; those that go on where the last part ended become part of it.
MILLRACE_EXPORT void append_part(const file_range& from, std::int64_t at, std::uint64_t item,
                                 sample_text& out);

/// The bytes of a piece in the `.bin`, checked as `dataset::view_of` does.
MILLRACE_EXPORT file_range range_of(const dataset::indexed_dataset& data, const dataset::piece& p,
                                    std::int64_t source);

[[noreturn]] MILLRACE_EXPORT void throw_piece_outside(const dataset::index_columns& columns,
                                                      const dataset::piece& p, std::int64_t length);

/// The same out of the columns of the `.idx`, entry by entry.
MILLRACE_EXPORT file_range range_of(const dataset::index_columns& columns, const dataset::piece& p,
                                    std::int64_t source);

/// Appends pieces to a row, one behind another from token `at` on. Returns where they end.
///
/// @param data  an indexed_dataset, or the index_columns of one
template <class Data>
std::int64_t append_pieces(const Data& data, std::span<const dataset::piece> pieces,
                           std::int64_t source, std::int64_t at, sample_text& out) {
  const std::uint64_t item = formats::size_bytes(data.type());
  for (const dataset::piece& p : pieces) {
    append_part(range_of(data, p, source), at, item, out);
    at += p.tokens;
    out.real += p.tokens;
  }
  return at;
}

/// Whether a piece goes on with the document of the one before, as `dataset::same_document` says,
/// but out of the columns of the `.idx` alone.
struct same_searched_document {
  const dataset::document_search& search;

  bool operator()(const dataset::piece& before, const dataset::piece& after) const {
    if (after.sequence < before.sequence) return false;
    if (after.sequence == before.sequence) return after.first == before.first + before.tokens;
    return search.document_of(before.sequence) == search.document_of(after.sequence);
  }
};

/// The boundaries of a row, each once up to seq_len.
template <class Joined>
void set_boundaries(std::span<const dataset::piece> pieces, std::int64_t seq_len, bool extra_token,
                    const Joined& joined, sample_text& out) {
  out.boundaries.resize(static_cast<std::size_t>(seq_len) + 1);
  const auto size =
      dataset::fill_cu_seqlens(pieces, seq_len, extra_token, std::span(out.boundaries), joined);
  out.boundaries.resize(static_cast<std::size_t>(size.entries));
}

}  // namespace millrace::loader::detail
