// SPDX-License-Identifier: Apache-2.0
#include "input/input_arguments.hpp"

#include <fnmatch.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

namespace millrace::preprocess {
namespace {

// Appends the paths in `folder` whose file name matches the pattern.
void list_matches(const std::string& folder, const std::string& pattern,
                  std::vector<std::string>& paths) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder.empty() ? "." : folder, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    const std::string name = entries->path().filename().string();
    if (::fnmatch(pattern.c_str(), name.c_str(), FNM_PERIOD) == 0) paths.push_back(folder + name);
  }
  if (error && !io::is_absent(error.value())) throw io_error(folder, "readdir", error.value());
}

enum class entry_kind : std::uint8_t { file, folder, other };

// Returns the kind of a folder's entry. Anything that is neither a regular file nor a folder, such
// as a pipe, is `other`.
entry_kind kind_of(const std::filesystem::directory_entry& entry) {
  std::error_code error;
  const auto status = entry.status(error);  // follows links
  if (error) throw io_error(entry.path(), "stat", error.value());
  switch (status.type()) {
    case std::filesystem::file_type::regular:
      return entry_kind::file;
    case std::filesystem::file_type::not_found:
      throw io_error(entry.path(), "stat", ENOENT);
    case std::filesystem::file_type::directory:
      if (!entry.is_symlink(error)) return entry_kind::folder;
      throw config_error(
          fmt::format("--input: {} is a link to a folder; links to folders are not followed inside "
                      "a folder, because they can form loops; pass the folder itself",
                      entry.path().string()));
    default:
      return entry_kind::other;
  }
}

void list_files(const std::string& folder, std::vector<std::string>& files) {
  std::vector<std::string> folders = {folder};
  while (!folders.empty()) {
    const std::string at = std::move(folders.back());
    folders.pop_back();
    std::error_code error;
    std::filesystem::directory_iterator entries(at, error);
    for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
      std::string path = entries->path().string();
      if (entries->path().filename().string().starts_with('.')) continue;
      const entry_kind kind = kind_of(*entries);
      if (kind == entry_kind::file) {
        files.push_back(std::move(path));
      } else if (kind == entry_kind::folder) {
        folders.push_back(std::move(path));
      }
    }
    if (error) throw io_error(at, "readdir", error.value());
  }
}

std::string read_list(const std::string& path) {
  const io::unique_fd fd = io::open_read_only(path);
  std::string text;
  constexpr std::size_t step_bytes = std::size_t{64} << 10;
  for (std::size_t used = 0;;) {
    text.resize(used + step_bytes);
    const ssize_t n =
        io::uninterrupted([&] { return ::read(fd.get(), text.data() + used, step_bytes); });
    if (n < 0) throw io_error(path, "read", errno);
    used += static_cast<std::size_t>(n);
    text.resize(used);
    if (n == 0) return text;
  }
}

}  // namespace

bool exists(const std::string& path) {
  return io::is_there(path, io::links::are_not_followed);
}

// Does not use glob(3), because glob(3) treats an inaccessible folder or name as absent, so
// documents would be dropped silently.
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
  // Do not confuse a file whose name is `-` with stdin.
  if (const auto dash = std::ranges::find(paths, "-"); dash != paths.end()) *dash = "./-";
  return paths;
}

std::vector<std::string> expand_folder(const std::string& folder) {
  std::vector<std::string> files;
  list_files(folder, files);
  if (files.empty()) {
    throw config_error(
        fmt::format("--input {}: this folder and its subfolders hold no files (names that begin "
                    "with '.' are ignored)",
                    folder));
  }
  std::sort(files.begin(), files.end());  // by byte value of the whole path, not of each part
  return files;
}

std::vector<std::string> expand_list(const std::string& path) {
  const std::string text = read_list(path);
  std::vector<std::string> arguments;
  std::string_view left = text;
  for (std::size_t number = 1; !left.empty(); ++number) {
    const std::size_t end = std::min(left.find('\n'), left.size());
    std::string_view line = left.substr(0, end);
    left.remove_prefix(std::min(end + 1, left.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.find_first_not_of(" \t") == line.npos) continue;
    if (line.starts_with('@')) {
      throw config_error(
          fmt::format("--input @{}: line {} names another list, {}; lists cannot be nested (for a "
                      "file with that name, write ./{})",
                      path, number, line, line));
    }
    arguments.emplace_back(line);
  }
  if (arguments.empty()) {
    throw config_error(fmt::format("--input @{}: this list names no file", path));
  }
  return arguments;
}

}  // namespace millrace::preprocess
