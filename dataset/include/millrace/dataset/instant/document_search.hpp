// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/instant/index_columns.hpp>
#include <millrace/dataset/instant/sampled_search.hpp>
#include <millrace/dataset/megatron/split.hpp>
#include <millrace/dataset/sample/piece.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// What lies at a place of the stored stream: which sequence, which document. Found by search in
/// the columns of the `.idx`, so that nothing is built and nothing read beforehand.
///
/// Memory 128 KiB at most, however many documents. Any number of threads. Each answer is checked
/// against the entries that it rests on: where an index contradicts itself, `format_error` with its
/// path and the byte.
class document_search {
 public:
  explicit document_search(index_columns columns)
      : columns_(std::move(columns)),
        pointers_(columns_.sequence_count()),
        documents_(columns_.document_count()) {}

  const index_columns& columns() const noexcept { return columns_; }

  /// The sequence that holds a token of the stream.
  ///
  /// @pre 0 <= token < columns().token_count()
  /// @throws format_error  none holds it.
  std::int64_t sequence_of(std::int64_t token) const { return find(token).sequence; }

  /// Appends what tokens `first` to `first + tokens - 1` of the stream are made of, in order. Empty
  /// sequences among them give no piece.
  ///
  /// @pre 0 <= first, 0 <= tokens, first + tokens <= columns().token_count()
  /// @throws format_error  the sequences there lie apart, overlap or end too early.
  void pieces(std::int64_t first, std::int64_t tokens, std::vector<piece>& out) const;

  /// The document that holds a sequence.
  ///
  /// @pre 0 <= sequence < columns().sequence_count()
  /// @throws format_error  none holds it.
  std::int64_t document_of(std::int64_t sequence) const;

  /// The sequences of a document.
  ///
  /// @pre 0 <= document < columns().document_count()
  /// @throws format_error  it ends before it starts, or outside the sequences.
  sequence_range sequences_of(std::int64_t document) const;

  /// The token of the stream with which a sequence starts.
  ///
  /// @pre 0 <= sequence < columns().sequence_count()
  /// @throws format_error  it starts outside the `.bin`, or between two tokens.
  std::int64_t first_token_of(std::int64_t sequence) const;

 private:
  struct found {
    std::int64_t sequence;
    std::int64_t length;  // of the sequence
    std::int64_t first;   // the token's place in it
  };
  found find(std::int64_t token) const;
  /// The next sequence behind `sequence` that has tokens, where it starts at token `at`.
  found next(std::int64_t sequence, std::int64_t at) const;
  std::int64_t item() const noexcept {
    return static_cast<std::int64_t>(formats::size_bytes(columns_.type()));
  }
  [[noreturn]] void throw_not_there(std::int64_t sequence, std::int64_t token) const;

  index_columns columns_;
  sampled_search pointers_;
  sampled_search documents_;
};

// ---------------------------------------------------------------------------------------------

inline document_search::found document_search::find(std::int64_t token) const {
  assert(0 <= token && token < columns_.token_count());
  const std::int64_t byte = token * item();
  const std::int64_t i =
      pointers_.last_not_above(byte, [&](std::int64_t at) { return columns_.pointer(at); });
  if (i < 0) throw_not_there(0, token);
  const std::int64_t pointer = columns_.pointer(i);
  const std::int64_t length = columns_.length(i);
  // Looked at again, as a search through nonsense may end anywhere.
  if (pointer < 0 || pointer > byte || pointer % item() != 0) throw_not_there(i, token);
  const std::int64_t first = (byte - pointer) / item();
  if (first >= length) throw_not_there(i, token);
  return {i, length, first};
}

inline document_search::found document_search::next(std::int64_t sequence, std::int64_t at) const {
  constexpr int patience = 16;  // empty sequences in a row that a search costs less than
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

inline void document_search::pieces(std::int64_t first, std::int64_t tokens,
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

inline std::int64_t document_search::document_of(std::int64_t sequence) const {
  assert(0 <= sequence && sequence < columns_.sequence_count());
  const auto holds = [&](std::int64_t d) {
    const std::int64_t end = columns_.document_start(d + 1);
    return columns_.document_start(d) <= sequence && sequence < end &&
           end <= columns_.sequence_count();
  };
  // Mostly each document is one sequence.
  if (sequence < columns_.document_count() && holds(sequence)) return sequence;
  const std::int64_t d = documents_.last_not_above(
      sequence, [&](std::int64_t at) { return columns_.document_start(at); });
  if (d >= 0 && holds(d)) return d;
  throw format_error(columns_.idx_path(), columns_.document_offset(std::max<std::int64_t>(d, 0)),
                     "sequence " + std::to_string(sequence) +
                         " is in no document: expected document ends that ascend");
}

inline sequence_range document_search::sequences_of(std::int64_t document) const {
  const document_range range = columns_.document(document);
  return {range.first, range.last};
}

inline std::int64_t document_search::first_token_of(std::int64_t sequence) const {
  const std::int64_t pointer = columns_.pointer(sequence);
  if (pointer < 0 || pointer % item() != 0 || pointer / item() > columns_.token_count()) {
    throw format_error(columns_.idx_path(), columns_.pointer_offset(sequence),
                       "sequence " + std::to_string(sequence) + " starts at byte " +
                           std::to_string(pointer) + ", expected a multiple of " +
                           std::to_string(item()) + " inside the .bin");
  }
  return pointer / item();
}

inline void document_search::throw_not_there(std::int64_t sequence, std::int64_t token) const {
  throw format_error(
      columns_.idx_path(), columns_.pointer_offset(sequence),
      "sequence " + std::to_string(sequence) + " of " + std::to_string(columns_.length(sequence)) +
          " tokens starts at byte " + std::to_string(columns_.pointer(sequence)) +
          ", expected one there that holds token " + std::to_string(token) +
          " of the .bin: pointers must ascend without gaps; run inspect_dataset verify");
}

}  // namespace millrace::dataset
