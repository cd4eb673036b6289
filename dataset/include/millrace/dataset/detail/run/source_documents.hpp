// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/dataset/detail/instant/document_search.hpp>
#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/detail/sequence_range.hpp>

namespace millrace::dataset {

/// The place from which the record of a document was read, according to the `.src`.
struct record_place {
  std::string input;  ///< name as passed to the program that read it; may contain any bytes
  std::int64_t line = 1;
  std::uint64_t begin = 0;  ///< bytes [begin, end) of the decompressed text, or row [begin, end)
  std::uint64_t end = 0;
  formats::src_unit unit = formats::src_unit::bytes;

  friend bool operator==(const record_place&, const record_place&) = default;
};

/// The documents of a dataset: their sequences, and the places from which the documents were read.
/// Thread-safe.
class source_documents {
 public:
  /// @param prefix  path without `.bin` and `.idx`; works if neither file can be mapped
  /// @throws io_error, format_error  as `index_columns` and `document_sources::find`
  explicit source_documents(std::filesystem::path prefix)
      : prefix_(std::move(prefix)),
        search_(index_columns(prefix_)),
        sources_(document_sources::find(prefix_, document_count())) {}
  source_documents(const source_documents&) = delete;
  source_documents& operator=(const source_documents&) = delete;

  const std::filesystem::path& prefix() const noexcept { return prefix_; }
  formats::dtype type() const noexcept { return search_.columns().type(); }
  std::int64_t document_count() const noexcept { return search_.columns().document_count(); }

  /// The document that contains a sequence. Takes O(log documents) time.
  /// @pre 0 <= sequence < the number of sequences
  /// @throws format_error  no document contains it.
  std::int64_t document_of(std::int64_t sequence) const { return search_.document_of(sequence); }

  /// @pre 0 <= document < document_count()
  /// @throws format_error  as `document_search::sequences_of`
  sequence_range sequences_of(std::int64_t document) const {
    return search_.sequences_of(document);
  }

  /// The offset in the stream of the first token of a sequence.
  /// @pre 0 <= sequence < the number of sequences
  /// @throws format_error  the sequence starts outside the `.bin`.
  std::int64_t first_token_of(std::int64_t sequence) const {
    return search_.first_token_of(sequence);
  }

  /// The sequence that contains a token of the stream. Takes O(log sequences) time.
  /// @pre 0 <= token < the number of tokens
  /// @throws format_error  no sequence contains it.
  std::int64_t sequence_of(std::int64_t token) const { return search_.sequence_of(token); }

  /// The place from which a document was read; nullopt without a `.src`.
  /// @pre 0 <= document < document_count()
  /// @throws format_error  the `.src` is inconsistent.
  std::optional<record_place> read_from(std::int64_t document) const {
    if (!sources_) return std::nullopt;
    const formats::source_place place = sources_->at(document);
    return record_place{std::string(sources_->input_name(place.input)), place.line, place.begin,
                        place.end, sources_->input_unit(place.input)};
  }

 private:
  std::filesystem::path prefix_;
  document_search search_;
  std::optional<document_sources> sources_;
};

}  // namespace millrace::dataset
