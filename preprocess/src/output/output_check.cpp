// SPDX-License-Identifier: Apache-2.0
#include "output/output_check.hpp"

#include <cstdint>
#include <map>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>

#include "output/dataset_paths.hpp"
#include "output/part_joiner.hpp"

namespace millrace::preprocess {

void expect_folder(const std::filesystem::path& prefix) {
  const auto folder = io::parent_folder(prefix);
  if (!io::is_folder(folder)) {
    throw config_error(fmt::format("--output-prefix {}: there is no folder {}; create it first",
                                   prefix.string(), folder.string()));
  }
}

void refuse_existing(const std::filesystem::path& prefix) {
  const dataset_paths paths(prefix);
  std::vector<std::filesystem::path> names = {paths.bin, paths.idx};
  for (const sidecar which : all_sidecars) names.push_back(paths.of(which));
  for (const auto& path : names) {
    if (io::is_there(path, io::links::are_not_followed)) {
      throw config_error(fmt::format(
          "{} exists; pass --overwrite to replace it, or another --output-prefix", path.string()));
    }
  }
}

std::vector<std::filesystem::path> files_of_run(const std::filesystem::path& output_prefix,
                                                std::span<const std::filesystem::path> prefixes,
                                                std::size_t partitions) {
  std::vector<std::filesystem::path> files;
  files.push_back(dataset_paths(output_prefix).with(".journal"));
  for (const auto& prefix : prefixes) {
    const dataset_paths paths(prefix);
    std::vector<std::filesystem::path> finished = {paths.bin, paths.idx};
    for (const sidecar which : all_sidecars) finished.push_back(paths.of(which));
    for (const auto& path : finished) {
      files.push_back(path);
      files.emplace_back(path) += ".partial";
    }
    for (const char* spill : {".documents.partial", ".src-groups.partial", ".keys.partial"}) {
      files.push_back(paths.with(spill));
    }
    for (std::size_t i = 0; partitions > 1 && i < partitions; ++i) {
      const dataset_paths part(part_prefix(prefix, i));
      for (const char* suffix : {".bin", ".idx", ".src", ".documents", ".src-groups"}) {
        files.push_back(part.with(std::string(suffix) + ".partial"));
      }
    }
  }
  return files;
}

void expect_own_file(const std::filesystem::path& path,
                     std::span<const std::filesystem::path> files, std::string_view option) {
  const auto refuse = [&](const std::string& what) {
    throw config_error(fmt::format("{} {}: {}", option, path.string(), what));
  };
  const auto folder = io::parent_folder(path);
  if (!io::is_folder(folder)) {
    refuse(fmt::format("there is no folder {}; create it first", folder.string()));
  }
  if (!path.has_filename() || io::is_folder(path)) {
    refuse("this is a folder; name a file");
  }
  const auto place = [&](const std::filesystem::path& of) {
    std::error_code problem;
    const auto parent = std::filesystem::weakly_canonical(io::parent_folder(of), problem);
    if (problem) throw io_error(io::parent_folder(of), "realpath", problem.value());
    return parent / of.filename();
  };
  const auto mine = place(path);
  for (const auto& file : files) {
    if (place(file) == mine) refuse("this run writes its output there; name another file");
  }
}

void refuse_inputs_among(std::span<const std::filesystem::path> files,
                         std::span<const input_file> inputs, std::string_view option) {
  std::map<std::pair<std::uint64_t, std::uint64_t>, const std::filesystem::path*> there;
  for (const auto& file : files) {
    if (const auto identity = io::identity_of(file)) {
      there.emplace(std::pair(identity->device, identity->inode), &file);
    }
  }
  if (there.empty()) return;
  for (const input_file& input : inputs) {
    if (input.is_stdin()) continue;
    const auto identity = io::identity_of(input.path);
    if (!identity) continue;
    const auto found = there.find({identity->device, identity->inode});
    if (found == there.end()) continue;
    throw config_error(
        fmt::format("--input {}: this run would write this file, as {}; pass another {}, or inputs "
                    "that exclude the file",
                    input.path.string(), found->second->string(), option));
  }
}

}  // namespace millrace::preprocess
