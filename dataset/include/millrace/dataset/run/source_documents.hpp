// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <millrace/dataset/document_sources.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/instant/document_search.hpp>
#include <millrace/dataset/megatron/split.hpp>

namespace millrace::dataset {

/// Where a record was read: what a `.src` says of a document.
struct record_place {
  std::string input;  ///< as it was given to the program that read it: any bytes
  std::int64_t line = 1;
  std::uint64_t begin = 0;  ///< bytes [begin, end) of the decompressed text
  std::uint64_t end = 0;

  friend bool operator==(const record_place&, const record_place&) = default;
};

/// The documents of a dataset: of which sequences each is, and where it was read. Any thread.
class source_documents {
 public:
  /// @throws io_error, format_error, config_error  as indexed_dataset, document_sources::find
  explicit source_documents(const std::filesystem::path& prefix)
      : data_(prefix), search_(index_columns(data_)), sources_(document_sources::find(data_)) {}
  source_documents(const source_documents&) = delete;
  source_documents& operator=(const source_documents&) = delete;

  const indexed_dataset& data() const noexcept { return data_; }

  /// O(log documents).
  /// @pre 0 <= sequence < data().sequence_count()
  /// @throws format_error  none holds it.
  std::int64_t document_of(std::int64_t sequence) const { return search_.document_of(sequence); }

  /// @pre 0 <= document < data().document_count()
  /// @throws format_error  as indexed_dataset::document
  sequence_range sequences_of(std::int64_t document) const {
    const document_range range = data_.document(document);
    return {range.first, range.last};
  }

  /// The token of the stream with which a sequence starts.
  /// @pre 0 <= sequence < data().sequence_count()
  /// @throws format_error  it starts outside the `.bin`.
  std::int64_t first_token_of(std::int64_t sequence) const {
    return search_.first_token_of(sequence);
  }

  /// The sequence that holds a token of the stream. O(log sequences).
  /// @pre 0 <= token < data().token_count()
  /// @throws format_error  none holds it.
  std::int64_t sequence_of(std::int64_t token) const { return search_.sequence_of(token); }

  /// Nothing without a `.src`.
  /// @pre 0 <= document < data().document_count()
  /// @throws format_error  the `.src` contradicts itself.
  std::optional<record_place> read_from(std::int64_t document) const {
    if (!sources_) return std::nullopt;
    const formats::source_place place = sources_->at(document);
    return record_place{std::string(sources_->input_name(place.input)), place.line, place.begin,
                        place.end};
  }

 private:
  indexed_dataset data_;
  document_search search_;
  std::optional<document_sources> sources_;
};

}  // namespace millrace::dataset
