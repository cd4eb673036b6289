// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/instant/sampled_search.hpp>
#include <millrace/dataset/detail/sample/piece.hpp>
#include <millrace/dataset/detail/sequence_range.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Finds the sequence and the document that contain a given token of the `.bin`, by searching the
/// columns of the `.idx`. Nothing is built or read in advance.
///
/// Uses at most 128 KiB of memory for any number of documents. Thread-safe. Each result is checked
/// against the entries that it depends on. Throws `format_error`, with the path and byte of the
/// `.idx`, if those entries are inconsistent.
class MILLRACE_EXPORT document_search {
 public:
  explicit document_search(index_columns columns)
      : columns_(std::move(columns)),
        pointers_(columns_.sequence_count()),
        documents_(columns_.document_count()) {}

  const index_columns& columns() const noexcept { return columns_; }

  /// Returns the sequence that contains a token of the stream.
  ///
  /// @pre 0 <= token < columns().token_count()
  /// @throws format_error  no sequence contains it.
  std::int64_t sequence_of(std::int64_t token) const { return find(token).sequence; }

  /// Appends the pieces that make up tokens `first` to `first + tokens - 1` of the stream, in
  /// order. Empty sequences give no piece.
  ///
  /// @pre 0 <= first, 0 <= tokens, first + tokens <= columns().token_count()
  /// @throws format_error  the sequences of these tokens have gaps, overlap or end too early.
  void pieces(std::int64_t first, std::int64_t tokens, std::vector<piece>& out) const;

  /// Returns the document that contains a sequence.
  ///
  /// @pre 0 <= sequence < columns().sequence_count()
  /// @throws format_error  no document contains it.
  std::int64_t document_of(std::int64_t sequence) const;

  /// Returns the sequences of a document.
  ///
  /// @pre 0 <= document < columns().document_count()
  /// @throws format_error  the document ends before it starts, or outside the sequences.
  sequence_range sequences_of(std::int64_t document) const;

  /// Returns the position of a sequence's first token in the stream.
  ///
  /// @pre 0 <= sequence < columns().sequence_count()
  /// @throws format_error  the sequence starts outside the `.bin`, or between two tokens.
  std::int64_t first_token_of(std::int64_t sequence) const;

 private:
  struct found {
    std::int64_t sequence;
    std::int64_t length;  // of the sequence
    std::int64_t first;   // the token's index in the sequence
  };
  found find(std::int64_t token) const;
  /// Returns the next nonempty sequence after `sequence`. Throws if that next sequence does not
  /// start at token `at`.
  found next(std::int64_t sequence, std::int64_t at) const;
  std::int64_t item() const noexcept {
    return static_cast<std::int64_t>(formats::size_bytes(columns_.type()));
  }
  [[noreturn]] void throw_not_there(std::int64_t sequence, std::int64_t token) const;

  index_columns columns_;
  sampled_search pointers_;
  sampled_search documents_;
};

}  // namespace millrace::dataset
