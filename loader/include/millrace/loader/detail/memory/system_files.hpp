// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// Where the kernel tells of itself. Another place than / is for tests, and for containers that
/// have the host's files elsewhere.
struct system_files {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
};

/// A small file of the kernel's, without spaces and line ends at its end; nothing if it cannot be
/// read.
MILLRACE_EXPORT std::optional<std::string> read_system_file(const std::filesystem::path& path);

}  // namespace millrace::loader
