// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace millrace::loader {

/// Where the kernel tells of itself. Another place than / is for tests, and for containers that
/// have the host's files elsewhere.
struct system_files {
  std::filesystem::path proc = "/proc";
  std::filesystem::path sys = "/sys";
};

/// A small file of the kernel's, without spaces and line ends at its end; nothing if it cannot be
/// read.
inline std::optional<std::string> read_system_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return std::nullopt;
  const auto end = text.find_last_not_of(" \t\n");
  text.erase(end == std::string::npos ? 0 : end + 1);
  return text;
}

}  // namespace millrace::loader
