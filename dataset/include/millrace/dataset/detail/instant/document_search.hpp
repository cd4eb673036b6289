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

/// What lies at a place of the stored stream: which sequence, which document. Found by search in
/// the columns of the `.idx`, so that nothing is built and nothing read beforehand.
///
/// Memory 128 KiB at most, however many documents. Any number of threads. Each answer is checked
/// against the entries that it rests on: where an index contradicts itself, `format_error` with its
/// path and the byte.
class MILLRACE_EXPORT document_search {
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

}  // namespace millrace::dataset
