// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include <millrace/error.hpp>

/// Files that somebody changed while they were read.
namespace millrace::preprocess {

/// @param end  byte at which the file ended, before it should have
inline format_error became_shorter(const std::filesystem::path& path, std::uint64_t end) {
  return {path, end, "the file became shorter while it was read"};
}

/// @param end  byte at which the file should have ended
inline format_error became_longer(const std::filesystem::path& path, std::uint64_t end) {
  return {path, end, "the file became longer while it was read"};
}

/// Compares how far a file was read that ended, with how long it was when the run was planned. What
/// is compressed may be cut off, or get more, right where one of its parts ends: then no decoder
/// finds anything wrong.
/// @throws format_error  they differ
inline void expect_whole(const std::filesystem::path& path, std::uint64_t read,
                         std::uint64_t planned) {
  if (read < planned) throw became_shorter(path, read);
  if (read > planned) throw became_longer(path, planned);
}

}  // namespace millrace::preprocess
