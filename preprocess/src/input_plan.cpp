// SPDX-License-Identifier: Apache-2.0
#include "input_plan.hpp"

#include <glob.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::preprocess {
namespace {

std::vector<std::string> expand(const std::string& argument) {
  std::error_code ignored;
  if (argument.find_first_of("*?[") == std::string::npos ||
      std::filesystem::exists(argument, ignored)) {
    return {argument};
  }
  ::glob_t found{};
  const int status = ::glob(argument.c_str(), GLOB_NOSORT, nullptr, &found);
  const std::unique_ptr<::glob_t, decltype(&::globfree)> owner(&found, &::globfree);
  if (status == GLOB_NOMATCH) {
    throw config_error(fmt::format("--input {}: no file matches this pattern", argument));
  }
  if (status != 0) throw io_error(argument, "glob", status == GLOB_NOSPACE ? ENOMEM : EACCES);
  std::vector<std::string> paths(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  std::sort(paths.begin(), paths.end());  // by byte value: the same order under every locale
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
