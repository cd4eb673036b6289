// SPDX-License-Identifier: Apache-2.0
#include "output_check.hpp"

#include <system_error>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

#include "dataset_paths.hpp"

namespace millrace::preprocess {

void expect_folder(const std::filesystem::path& prefix) {
  const auto folder = io::parent_folder(prefix);
  std::error_code ignored;
  if (!std::filesystem::is_directory(folder, ignored)) {
    throw config_error(fmt::format("--output-prefix {}: there is no folder {}; make it first",
                                   prefix.string(), folder.string()));
  }
}

void refuse_existing(const std::filesystem::path& prefix) {
  const dataset_paths paths(prefix);
  for (const auto& path : {paths.bin, paths.idx}) {
    std::error_code ignored;
    if (std::filesystem::exists(std::filesystem::symlink_status(path, ignored))) {
      throw config_error(fmt::format(
          "{} exists; give --overwrite to replace it, or another --output-prefix", path.string()));
    }
  }
}

void refuse_partial_inputs(const std::filesystem::path& prefix,
                           std::span<const input_file> inputs) {
  for (const char* suffix : {".bin.partial", ".idx.partial", ".documents.partial"}) {
    auto partial = prefix;
    partial += suffix;
    for (const input_file& input : inputs) {
      std::error_code ignored;
      if (std::filesystem::equivalent(input.path, partial, ignored)) {
        throw config_error(
            fmt::format("--input {}: this run would write it, as {}; name another --output-prefix",
                        input.path.string(), partial.string()));
      }
    }
  }
}

}  // namespace millrace::preprocess
