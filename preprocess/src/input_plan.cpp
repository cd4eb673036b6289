// SPDX-License-Identifier: Apache-2.0
#include "input_plan.hpp"

#include <fnmatch.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::preprocess {
namespace {

bool is_absent(int code) {
  return code == ENOENT || code == ENOTDIR;
}

bool exists(const std::string& path) {
  struct ::stat ignored {};
  if (::lstat(path.c_str(), &ignored) == 0) return true;
  if (!is_absent(errno)) throw io_error(path, "stat", errno);
  return false;
}

// The paths in `folder` whose last part matches.
void list_matches(const std::string& folder, const std::string& pattern,
                  std::vector<std::string>& paths) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder.empty() ? "." : folder, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (::fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0) paths.push_back(folder + name);
  }
  if (error && !is_absent(error.value())) throw io_error(folder, "readdir", error.value());
}

// Not glob(3): it takes a folder or a name that it may not look at for one that is not there, which
// would be so many documents fewer, without a word.
std::vector<std::string> expand_pattern(const std::string& pattern) {
  std::vector<std::string> paths = {pattern.starts_with('/') ? "/" : ""};
  for (std::size_t begin = 0; begin < pattern.size();) {
    const std::size_t end = std::min(pattern.find('/', begin), pattern.size());
    const std::string part = pattern.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty()) continue;
    std::vector<std::string> longer;
    for (const std::string& path : paths) {
      if (part.find_first_of("*?[\\") != part.npos) {
        list_matches(path, part, longer);
      } else if (exists(path + part)) {
        longer.push_back(path + part);
      }
    }
    if (end != pattern.size()) {
      for (std::string& path : longer) path += '/';
    }
    paths = std::move(longer);
  }
  std::sort(paths.begin(), paths.end());  // by byte value: the same order under every locale
  return paths;
}

std::vector<std::string> expand(const std::string& argument) {
  if (argument.find_first_of("*?[") == argument.npos || exists(argument)) return {argument};
  auto paths = expand_pattern(argument);
  if (paths.empty()) {
    throw config_error(fmt::format("--input {}: no file matches this pattern", argument));
  }
  return paths;
}

compression packing_of(std::span<const std::byte> head) {
  const auto starts_with = [&](std::initializer_list<unsigned> magic, unsigned low_bits_free = 0) {
    if (head.size() < magic.size()) return false;
    std::size_t i = 0;
    for (const unsigned byte : magic) {
      const unsigned mask = i == 0 ? 0xFFU & ~low_bits_free : 0xFFU;
      if ((std::to_integer<unsigned>(head[i++]) & mask) != byte) return false;
    }
    return true;
  };
  if (starts_with({0x1F, 0x8B})) return compression::gzip;
  if (starts_with({0x28, 0xB5, 0x2F, 0xFD})) return compression::zstd;
  if (starts_with({0x50, 0x2A, 0x4D, 0x18}, 0x0F)) return compression::zstd;  // skippable frame
  return compression::none;
}

void check_name(const input_file& file) {
  const std::string suffix = file.path.extension().string();
  const bool kept = (suffix == ".gz" && file.packing != compression::gzip) ||
                    (suffix == ".zst" && file.packing != compression::zstd);
  if (kept && file.size_bytes != 0) {
    throw config_error(
        fmt::format("{}: named {}, but its first bytes are not those of such a file; expected "
                    "{}, or another name",
                    file.path.string(), suffix, suffix == ".gz" ? "1f 8b" : "28 b5 2f fd"));
  }
}

input_file look_at(const std::string& name) {
  input_file file{.path = name};
  struct ::stat status {};
  if (::stat(file.path.c_str(), &status) != 0) throw io_error(file.path, "open", errno);
  if (S_ISDIR(status.st_mode)) throw io_error(file.path, "open", EISDIR);
  // A pipe is not even opened: closed again, it would take its writer down, with all that it wrote.
  if (!S_ISREG(status.st_mode)) return file;
  const io::unique_fd fd = io::open_read_only(file.path);
  file.size_bytes = static_cast<std::uint64_t>(status.st_size);
  std::array<std::byte, 4> head{};
  const std::size_t size = io::pread_some(fd, head, 0, file.path);
  file.packing = packing_of(std::span(head).first(size));
  check_name(file);
  return file;
}

}  // namespace

std::vector<input_file> plan_inputs(std::span<const std::string> arguments) {
  std::vector<input_file> files;
  for (const std::string& argument : arguments) {
    for (const std::string& path : expand(argument)) files.push_back(look_at(path));
  }
  return files;
}

}  // namespace millrace::preprocess
