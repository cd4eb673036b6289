// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

#include <millrace/formats/detail/sidecar.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::preprocess {

using formats::all_sidecars;
using formats::sidecar;
using formats::suffix_of;
using io::is_file;

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
