// SPDX-License-Identifier: Apache-2.0
#include "merge/merge_folder.hpp"

#include <cerrno>
#include <set>
#include <string>
#include <system_error>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>

#include "output/dataset_paths.hpp"

namespace millrace::preprocess {
namespace {

// Returns the prefix of the dataset that a file of the folder belongs to. The name of the file is
// that prefix with one suffix: .bin, .idx or that of a sidecar.
std::filesystem::path prefix_of(const std::filesystem::path& file) {
  // A dangling link means that a shard is missing, so it must not be ignored.
  if (!is_file(file)) throw io_error(file, "open (not a regular file)", EINVAL);
  auto prefix = file;
  prefix.replace_extension();
  const dataset_paths paths(prefix);
  for (const auto& path : {paths.bin, paths.idx}) {
    if (is_file(path)) continue;
    if (file.extension() == ".partial" || file.extension() == ".journal") {
      throw config_error(fmt::format(
          "{} belongs to an unfinished run; finish that run with --resume, or remove its files",
          file.string()));
    }
    throw config_error(
        fmt::format("{} belongs to no dataset, because there is no {}; move it out of the folder, "
                    "or add the missing file",
                    file.string(), path.string()));
  }
  return prefix;
}

}  // namespace

std::vector<std::filesystem::path> datasets_in(const std::filesystem::path& folder) {
  std::set<std::string> prefixes;
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error) &&
      (!error || error.value() == ENOENT || error.value() == ENOTDIR)) {
    throw config_error(
        fmt::format("--input {}: this is not a folder; expected the folder that holds the datasets",
                    folder.string()));
  }
  std::filesystem::directory_iterator entries(folder, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    std::error_code ignored;
    if (!entries->is_directory(ignored)) prefixes.insert(prefix_of(entries->path()).string());
  }
  if (error) throw io_error(folder, "opendir", error.value());
  if (prefixes.empty()) {
    throw config_error(
        fmt::format("--input {}: the folder has no .bin/.idx pair", folder.string()));
  }
  return {prefixes.begin(), prefixes.end()};
}

void expect_another_folder(const std::filesystem::path& output_prefix,
                           const std::filesystem::path& input) {
  const auto output = io::identity_of(io::parent_folder(output_prefix));
  if (!output || output != io::identity_of(input)) return;
  throw config_error(
      fmt::format("--output-prefix {}: this is the input folder, so the next merge would also read "
                  "the output; choose another folder",
                  output_prefix.string()));
}

}  // namespace millrace::preprocess
