// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/document_sources.hpp>

#include <cassert>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include <millrace/dataset/detail/sidecar_paths.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/src.hpp>

namespace millrace::dataset {

MILLRACE_INLINE std::optional<document_sources> document_sources::find(
    const std::filesystem::path& prefix, std::int64_t document_count) {
  auto path = sidecar_paths(prefix).src;
  auto file = map_sidecar(path);
  if (!file) return std::nullopt;
  try {
    formats::src_view view = formats::parse_src(file->bytes());
    if (view.document_count() != static_cast<std::uint64_t>(document_count)) {
      throw format_error(16, "it has the places of " + std::to_string(view.document_count()) +
                                 " documents, but the dataset has " +
                                 std::to_string(document_count));
    }
    return document_sources(std::move(path), std::move(*file), std::move(view));
  } catch (const format_error& e) {
    throw e.in(path);
  }
}

MILLRACE_INLINE formats::source_place document_sources::at(std::int64_t document) const {
  assert(document >= 0 && static_cast<std::uint64_t>(document) < view_.document_count());
  try {
    return view_.at(static_cast<std::uint64_t>(document));
  } catch (const format_error& e) {
    throw e.in(path_);
  }
}

}  // namespace millrace::dataset
