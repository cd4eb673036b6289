// SPDX-License-Identifier: Apache-2.0
#include "output/partition_files.hpp"

#include <sys/resource.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/text.hpp>
#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

#include "process/fault_point.hpp"

namespace millrace::preprocess {
namespace {

// Each partition has five files, and each file also needs a descriptor for its folder.
constexpr ::rlim_t descriptors_of_part = 10;
// Descriptors for the inputs, the dataset itself, and sockets inherited from the parent process.
constexpr ::rlim_t other_descriptors = 256;

// Returns whether `rest` can follow PREFIX.part- in the name of a partition's file: for example
// 00003.bin.partial.
bool names_part(std::string_view rest) {
  const std::size_t digits = rest.find_first_not_of("0123456789");
  return digits != rest.npos && digits >= 5 && rest[digits] == '.' && rest.ends_with(".partial");
}

}  // namespace

std::filesystem::path part_prefix(std::filesystem::path prefix, std::size_t partition) {
  prefix += fmt::format(".part-{:05}", partition);
  return prefix;
}

void remove_part_files(const std::filesystem::path& prefix) {
  const std::string start = prefix.filename().string() + ".part-";
  std::vector<std::filesystem::path> found;
  const auto folder = io::parent_folder(prefix);
  std::error_code problem;
  std::filesystem::directory_iterator entries(folder, problem);
  if (problem) throw io_error(folder, "list", problem.value());
  for (const auto& entry : entries) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(start) && names_part(std::string_view(name).substr(start.size()))) {
      found.push_back(entry.path());
    }
  }
  for (const auto& path : found) {
    fault_point("publish");
    io::remove_if_exists(path);
  }
}

void expect_room_for_partitions(std::size_t keys, std::size_t partitions) {
  const ::rlim_t wanted = keys * partitions * descriptors_of_part + other_descriptors;
  struct ::rlimit limit {};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= wanted) return;
  if (limit.rlim_max >= wanted) {
    limit.rlim_cur = wanted;
    if (::setrlimit(RLIMIT_NOFILE, &limit) == 0) return;
  }
  throw config_error(
      fmt::format("--partitions {}: needs {} open files for {}, but only {} are allowed; raise "
                  "`ulimit -n`, or use fewer partitions",
                  partitions, wanted, command::counted(static_cast<std::int64_t>(keys), "key"),
                  static_cast<std::uint64_t>(limit.rlim_max)));
}

}  // namespace millrace::preprocess
