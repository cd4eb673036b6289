// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>

#include <millrace/formats/detail/sidecar.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::dataset {

/// The paths of the optional files next to PREFIX.bin and PREFIX.idx.
struct sidecar_paths {
  explicit sidecar_paths(const std::filesystem::path& prefix)
      : meta(prefix), sum(prefix), src(prefix), mask(prefix) {
    meta += suffix_of(formats::sidecar::meta);
    sum += suffix_of(formats::sidecar::sum);
    src += suffix_of(formats::sidecar::src);
    mask += suffix_of(formats::sidecar::mask);
  }
  std::filesystem::path meta;
  std::filesystem::path sum;
  std::filesystem::path src;
  std::filesystem::path mask;
};

/// Maps a sidecar file. Returns nullopt if the file does not exist.
/// @throws io_error  the file exists but cannot be opened.
inline std::optional<io::file_mapping> map_sidecar(const std::filesystem::path& path) {
  if (!io::identity_of(path)) return std::nullopt;
  return io::file_mapping::or_copy(path);
}

}  // namespace millrace::dataset
