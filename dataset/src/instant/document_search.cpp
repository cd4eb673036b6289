// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/instant/document_search.hpp>

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <string>
#include <vector>

#include <millrace/dataset/detail/sample/piece.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

MILLRACE_INLINE document_search::found document_search::find(std::int64_t token) const {
  assert(0 <= token && token < columns_.token_count());
  const std::int64_t byte = token * item();
  const std::int64_t i =
      pointers_.last_not_above(byte, [&](std::int64_t at) { return columns_.pointer(at); });
  if (i < 0) throw_not_there(0, token);
  const std::int64_t pointer = columns_.pointer(i);
  const std::int64_t length = columns_.length(i);
  // Check the result, because a search in a column that is not ascending may return any entry.
  if (pointer < 0 || pointer > byte || pointer % item() != 0) throw_not_there(i, token);
  const std::int64_t first = (byte - pointer) / item();
  if (first >= length) throw_not_there(i, token);
  return {i, length, first};
}

MILLRACE_INLINE document_search::found document_search::next(std::int64_t sequence,
                                                             std::int64_t at) const {
  // After this many empty sequences in a row, a search is faster than a scan.
  constexpr int patience = 16;
  for (int i = 0; i < patience; ++i) {
    if (++sequence == columns_.sequence_count()) throw_not_there(sequence - 1, at);
    const std::int64_t length = columns_.length(sequence);
    if (length == 0) continue;
    if (length < 0 || columns_.pointer(sequence) != at * item()) throw_not_there(sequence, at);
    return {sequence, length, 0};
  }
  const found result = find(at);
  if (result.first != 0 || result.sequence <= sequence) throw_not_there(result.sequence, at);
  return result;
}

MILLRACE_INLINE void document_search::pieces(std::int64_t first, std::int64_t tokens,
                                             std::vector<piece>& out) const {
  assert(0 <= first && 0 <= tokens && tokens <= columns_.token_count() - first);
  if (tokens == 0) return;
  found here = find(first);
  for (;;) {
    const std::int64_t taken = std::min(tokens, here.length - here.first);
    out.push_back({here.sequence, here.first, taken});
    tokens -= taken;
    if (tokens == 0) return;
    first += taken;
    here = next(here.sequence, first);
  }
}

MILLRACE_INLINE std::int64_t document_search::document_of(std::int64_t sequence) const {
  assert(0 <= sequence && sequence < columns_.sequence_count());
  const auto holds = [&](std::int64_t d) {
    const std::int64_t end = columns_.document_start(d + 1);
    return columns_.document_start(d) <= sequence && sequence < end &&
           end <= columns_.sequence_count();
  };
  // Try the usual case first: each document is one sequence.
  if (sequence < columns_.document_count() && holds(sequence)) return sequence;
  const std::int64_t d = documents_.last_not_above(
      sequence, [&](std::int64_t at) { return columns_.document_start(at); });
  if (d >= 0 && holds(d)) return d;
  throw format_error(columns_.idx_path(), columns_.document_offset(std::max<std::int64_t>(d, 0)),
                     "sequence " + std::to_string(sequence) +
                         " is in no document: expected document ends that ascend");
}

MILLRACE_INLINE sequence_range document_search::sequences_of(std::int64_t document) const {
  const document_range range = columns_.document(document);
  return {range.first, range.last};
}

MILLRACE_INLINE std::int64_t document_search::first_token_of(std::int64_t sequence) const {
  const std::int64_t pointer = columns_.pointer(sequence);
  if (pointer < 0 || pointer % item() != 0 || pointer / item() > columns_.token_count()) {
    throw format_error(columns_.idx_path(), columns_.pointer_offset(sequence),
                       "sequence " + std::to_string(sequence) + " starts at byte " +
                           std::to_string(pointer) + ", expected a multiple of " +
                           std::to_string(item()) + " inside the .bin");
  }
  return pointer / item();
}

MILLRACE_INLINE void document_search::throw_not_there(std::int64_t sequence,
                                                      std::int64_t token) const {
  throw format_error(
      columns_.idx_path(), columns_.pointer_offset(sequence),
      "sequence " + std::to_string(sequence) + " of " + std::to_string(columns_.length(sequence)) +
          " tokens starts at byte " + std::to_string(columns_.pointer(sequence)) +
          ", expected one there that holds token " + std::to_string(token) +
          " of the .bin: pointers must ascend without gaps; run inspect_dataset verify");
}

}  // namespace millrace::dataset
