// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/detail/index_errors.hpp>
#include <millrace/dataset/detail/instant/document_search.hpp>
#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/instant/schedule.hpp>
#include <millrace/dataset/detail/run/batch_steps.hpp>
#include <millrace/dataset/detail/run/sample_text.hpp>
#include <millrace/dataset/detail/sample/cu_seqlens.hpp>
#include <millrace/dataset/detail/sample/piece.hpp>
#include <millrace/error.hpp>

/// Helpers that the four runs share to implement `run::text_of`.
namespace millrace::dataset::detail {

inline std::filesystem::path bin_of(std::filesystem::path prefix) {
  return prefix += ".bin";
}

/// Scratch space for the pieces of a row, one per thread. With it, `run::text_of` no longer
/// allocates once it has processed the longest row.
inline std::vector<piece>& scratch_pieces() {
  thread_local std::vector<piece> pieces;
  pieces.clear();
  return pieces;
}

inline void clear(sample_text& out, std::int64_t position, std::int64_t source) {
  out.position = position;
  out.source = source;
  out.real = 0;
  out.parts.clear();
  out.boundaries.clear();
  out.extra_begins = false;
  out.document_ends.clear();
}

/// Appends bytes of a file to a row. Extends the last part if the bytes directly follow it.
inline void append_part(const file_range& from, std::int64_t at, std::uint64_t item,
                        sample_text& out) {
  if (from.bytes == 0) return;
  if (!out.parts.empty()) {
    row_part& last = out.parts.back();
    const auto tokens = static_cast<std::int64_t>(last.from.bytes / item);
    if (last.from.offset + last.from.bytes == from.offset && last.at + tokens == at) {
      last.from.bytes += from.bytes;
      return;
    }
  }
  out.parts.push_back({from, at});
}

[[noreturn]] inline void throw_piece_outside(const index_columns& columns, const piece& p,
                                             std::int64_t length) {
  throw format_error(columns.idx_path(), columns.length_offset(p.sequence),
                     "sequence " + std::to_string(p.sequence) + " has " + std::to_string(length) +
                         " tokens, expected " + std::to_string(p.tokens) + " from token " +
                         std::to_string(p.first) +
                         ": a sample index or a row table belongs to another dataset; remove it, "
                         "so that it is built again");
}

/// Returns the byte range of a piece in the `.bin`. Reads it from the columns of the `.idx` and
/// checks it.
inline file_range range_of(const index_columns& columns, const piece& p, std::int64_t source) {
  if (p.tokens == 0) return {source, 0, 0};
  const std::size_t item = formats::size_bytes(columns.type());
  const std::int64_t length = columns.length(p.sequence);
  if (p.first < 0 || p.first > length || p.tokens < 0 || p.tokens > length - p.first) {
    throw_piece_outside(columns, p, length);
  }
  const std::int64_t pointer = columns.pointer(p.sequence);
  // A negative pointer becomes larger than any file.
  const auto begin = static_cast<std::uint64_t>(pointer);
  const std::uint64_t size = columns.bin_size_bytes();
  if (begin > size || static_cast<std::uint64_t>(length) * item > size - begin ||
      begin % item != 0) {
    throw_bad_pointer(columns.idx_path(), columns.pointer_offset(p.sequence), p.sequence, length,
                      pointer, item, size);
  }
  return {source, begin + static_cast<std::uint64_t>(p.first) * item,
          static_cast<std::uint64_t>(p.tokens) * item};
}

/// Appends the concatenated pieces to a row, starting at token `at`. Returns the offset after the
/// last piece.
inline std::int64_t append_text(const index_columns& columns, std::span<const piece> pieces,
                                std::int64_t source, std::int64_t at, sample_text& out) {
  const std::uint64_t item = formats::size_bytes(columns.type());
  for (const piece& p : pieces) {
    append_part(range_of(columns, p, source), at, item, out);
    at += p.tokens;
    out.real += p.tokens;
  }
  return at;
}

/// A predicate that returns true if a piece continues the document of the previous piece. Like
/// `same_document`, but uses only the columns of the `.idx`.
struct same_searched_document {
  const document_search& search;

  bool operator()(const piece& before, const piece& after) const {
    if (after.sequence < before.sequence) return false;
    if (after.sequence == before.sequence) return after.first == before.first + before.tokens;
    return search.document_of(before.sequence) == search.document_of(after.sequence);
  }
};

/// Whether the token at an offset of a row is the first one of a document.
template <class Joined>
bool begins_document(std::span<const piece> pieces, std::int64_t offset, const Joined& joined) {
  std::int64_t at = 0;
  const piece* before = nullptr;
  for (const piece& each : pieces) {
    if (each.tokens == 0) continue;
    if (at == offset) return before == nullptr || !joined(*before, each);
    at += each.tokens;
    before = &each;
  }
  return false;
}

/// Fills in the boundaries of a row, up to the first that is seq_len. Writes no other entries: a
/// row has few documents, and seq_len + 1 entries are more memory than its tokens.
template <class Joined>
void set_boundaries(std::span<const piece> pieces, std::int64_t seq_len, bool extra_token,
                    const Joined& joined, sample_text& out) {
  out.boundaries.resize(std::min(pieces.size() + 2, static_cast<std::size_t>(seq_len) + 1));
  out.boundaries.resize(write_boundaries(pieces, seq_len, extra_token, out.boundaries, joined));
  out.boundaries.resize(static_cast<std::size_t>(count_to_end(out.boundaries, seq_len)));
  out.extra_begins = extra_token && begins_document(pieces, seq_len, joined);
}

/// Fills in a row that is one range of the stream, in stored order.
inline void set_window(std::int64_t position, std::int64_t source, std::int64_t first_token,
                       std::int64_t tokens, std::uint64_t item, sample_text& out) {
  clear(out, position, source);
  out.real = tokens;
  out.parts.push_back({{source, static_cast<std::uint64_t>(first_token) * item,
                        static_cast<std::uint64_t>(tokens) * item},
                       0});
}

/// @throws config_error  a segment of the schedule begins at a different position than its first
///                       step.
inline void check_begins(const schedule& blend, const batch_steps& steps) {
  for (const segment_begin& segment : blend.begins()) {
    const std::int64_t position = steps.first_position(segment.step);
    if (position == segment.position) continue;
    throw config_error("the segment of the schedule from step " + std::to_string(segment.step) +
                       " on begins at sample " + std::to_string(segment.position) +
                       " of the run, but step " + std::to_string(segment.step) +
                       " of the loader at sample " + std::to_string(position) + ", of " +
                       std::to_string(steps.samples_of(segment.step)) +
                       ": expected the global_batch_size and the ramp-up that the schedule was "
                       "made with");
  }
}

}  // namespace millrace::dataset::detail
