// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// Locations of the kernel's status files. Tests, and containers that mount the host's files
/// elsewhere, use other paths.
struct system_files {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
};

/// Reads a small kernel file and strips trailing spaces and newlines. Empty if it cannot be read.
MILLRACE_EXPORT std::optional<std::string> read_system_file(const std::filesystem::path& path);

}  // namespace millrace::loader
