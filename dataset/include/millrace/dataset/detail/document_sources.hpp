// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/src.hpp>

namespace millrace::dataset {

/// A mapped PREFIX.src file. For each document of a dataset, it records the place in the inputs
/// from which the document was read. All functions are thread-safe.
class MILLRACE_EXPORT document_sources {
 public:
  /// Returns the sources of `data`, or nullopt if there is no `.src`.
  ///
  /// @throws io_error      the `.src` exists but cannot be opened.
  /// @throws format_error  the file is not a `.src`, or does not have as many documents as the
  ///                       dataset.
  static std::optional<document_sources> find(const indexed_dataset& data) {
    return find(data.prefix(), data.document_count());
  }
  /// As above, for a dataset that is not open. `prefix` is its path without `.bin` and `.idx`.
  static std::optional<document_sources> find(const std::filesystem::path& prefix,
                                              std::int64_t document_count);

  /// @pre 0 <= document < document_count() of the dataset
  /// @throws format_error  the `.src` is inconsistent; the message has its path and byte.
  formats::source_place at(std::int64_t document) const;

  const std::filesystem::path& path() const noexcept { return path_; }

  std::uint64_t input_count() const noexcept { return view_.input_count(); }
  /// Copies of the names and units of all inputs.
  std::vector<formats::src_input> inputs() const { return view_.inputs(); }
  formats::src_unit input_unit(std::uint32_t input) const noexcept {
    return view_.input_unit(input);
  }

  /// The name of an input file, as it was passed to the program that read the file. May contain any
  /// bytes.
  std::string_view input_name(std::uint32_t input) const noexcept {
    return view_.input_name(input);
  }

  /// Makes one pass that calls `look(document, place)` for each document in order. Takes constant
  /// memory. If `look` throws a `format_error` without a path, this function adds the path of the
  /// `.src`.
  ///
  /// @throws format_error  an entry is inconsistent; the message has the path and the byte.
  template <class Look>
  void for_each(Look&& look) const;

  /// Returns the byte offset, in the `.src`, of the directory entry for the group that contains
  /// `document`. Messages show this offset.
  /// @pre 0 <= document < document_count() of the dataset
  std::uint64_t offset_of(std::int64_t document) const noexcept {
    return view_.directory_offset(static_cast<std::uint64_t>(document) /
                                  formats::src_group_documents);
  }

 private:
  document_sources(std::filesystem::path path, io::file_mapping file, formats::src_view view)
      : path_(std::move(path)), file_(std::move(file)), view_(std::move(view)) {}

  std::filesystem::path path_;
  io::file_mapping file_;
  formats::src_view view_;  // points into file_, whose bytes do not move
};

// ---------------------------------------------------------------------------------------------

template <class Look>
void document_sources::for_each(Look&& look) const {
  constexpr std::int64_t documents_between = std::int64_t{1} << 20;  // a few MiB of the `.src`
  try {
    formats::src_cursor cursor(view_);
    std::int64_t document = 0;
    for (auto places = cursor.next(); !places.empty(); places = cursor.next()) {
      for (const formats::source_place& place : places) {
        look(document, place);
        if (++document % documents_between == 0) file_.let_go();
      }
    }
  } catch (const format_error& e) {
    throw e.path().empty() ? e.in(path_) : e;
  }
}

}  // namespace millrace::dataset
