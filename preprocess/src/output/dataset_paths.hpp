// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <filesystem>
#include <string_view>

namespace millrace::preprocess {

/// What lies beside PREFIX.bin and PREFIX.idx: the prefix and one suffix each, which is all that
/// Megatron's merge_datasets passes over.
enum class sidecar { meta, sum, src, bad };
inline constexpr std::array<sidecar, 4> all_sidecars = {sidecar::meta, sidecar::sum, sidecar::src,
                                                        sidecar::bad};

constexpr std::string_view suffix_of(sidecar which) {
  constexpr std::array<std::string_view, 4> suffixes = {".meta", ".sum", ".src", ".bad"};
  return suffixes[static_cast<std::size_t>(which)];
}

/// The paths of a dataset.
struct dataset_paths {
  explicit dataset_paths(const std::filesystem::path& dataset_prefix)
      : prefix(dataset_prefix), bin(with(".bin")), idx(with(".idx")) {}

  std::filesystem::path with(std::string_view suffix) const {
    auto path = prefix;
    path += suffix;
    return path;
  }
  std::filesystem::path of(sidecar which) const { return with(suffix_of(which)); }

  std::filesystem::path prefix;
  std::filesystem::path bin;
  std::filesystem::path idx;
};

}  // namespace millrace::preprocess
