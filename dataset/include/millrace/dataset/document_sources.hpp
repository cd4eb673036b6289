// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/sidecar_paths.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/src.hpp>

namespace millrace::dataset {

/// Where the documents of a dataset come from: its PREFIX.src, mapped. Any number of threads may
/// read it.
class document_sources {
 public:
  /// The sources of `data`, or nothing if it has none.
  ///
  /// @throws io_error      the `.src` is there and cannot be opened.
  /// @throws format_error  it is none, or not of as many documents.
  static std::optional<document_sources> find(const indexed_dataset& data);

  /// @pre 0 <= document < document_count() of the dataset
  /// @throws format_error  the `.src` contradicts itself, with its path and byte.
  formats::source_place at(std::int64_t document) const;

  /// The input's name, as it was given to the program that read it: any bytes.
  std::string_view input_name(std::uint32_t input) const noexcept {
    return view_.input_name(input);
  }

 private:
  document_sources(std::filesystem::path path, io::file_mapping file, formats::src_view view)
      : path_(std::move(path)), file_(std::move(file)), view_(std::move(view)) {}

  std::filesystem::path path_;
  io::file_mapping file_;
  formats::src_view view_;  // of the bytes of file_, which stay where they are
};

// ---------------------------------------------------------------------------------------------

inline std::optional<document_sources> document_sources::find(const indexed_dataset& data) {
  auto path = sidecar_paths(data.prefix()).src;
  auto file = map_sidecar(path);
  if (!file) return std::nullopt;
  try {
    formats::src_view view = formats::parse_src(file->bytes());
    if (view.document_count() != static_cast<std::uint64_t>(data.document_count())) {
      throw format_error(16, "the places of " + std::to_string(view.document_count()) +
                                 " documents, but the dataset has " +
                                 std::to_string(data.document_count()));
    }
    return document_sources(std::move(path), std::move(*file), std::move(view));
  } catch (const format_error& e) {
    throw e.in(path);
  }
}

inline formats::source_place document_sources::at(std::int64_t document) const {
  assert(document >= 0 && static_cast<std::uint64_t>(document) < view_.document_count());
  try {
    return view_.at(static_cast<std::uint64_t>(document));
  } catch (const format_error& e) {
    throw e.in(path_);
  }
}

}  // namespace millrace::dataset
