// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/memory/system_files.hpp>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>

namespace millrace::loader {

MILLRACE_INLINE std::optional<std::string> read_system_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) return std::nullopt;
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (in.bad()) return std::nullopt;
  const auto end = text.find_last_not_of(" \t\n");
  text.erase(end == std::string::npos ? 0 : end + 1);
  return text;
}

}  // namespace millrace::loader
