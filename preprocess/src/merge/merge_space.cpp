// SPDX-License-Identifier: Apache-2.0
#include "merge/merge_space.hpp"

#include <cerrno>

#include <fmt/format.h>

#include <millrace/error.hpp>

namespace millrace::preprocess {

void reserve_whole(const std::filesystem::path& prefix, std::span<const known_file> files) {
  std::uint64_t total = 0;
  for (const known_file& each : files) total += each.more_bytes;
  for (const known_file& each : files) {
    try {
      each.file->reserve(each.more_bytes);
    } catch (const io_error& e) {
      if (e.code() != ENOSPC && e.code() != EDQUOT) throw;
      throw error(
          fmt::format("{}: the disk has no room for the whole, at least {} bytes; nothing was "
                      "copied yet: make room, then start again",
                      prefix.string(), total));
    }
  }
}

}  // namespace millrace::preprocess
