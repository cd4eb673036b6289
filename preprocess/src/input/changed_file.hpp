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

}  // namespace millrace::preprocess
