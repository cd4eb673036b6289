// SPDX-License-Identifier: Apache-2.0
#include "dataset_list.hpp"

#include <glob.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include <millrace/dataset/detail/megatron/blend_list.hpp>
#include <millrace/error.hpp>

#include "command_line.hpp"

namespace millrace::inspect {

namespace {

namespace fs = std::filesystem;

bool exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

std::string without_extension(const fs::path& idx) {
  return fs::path(idx).replace_extension().string();
}

/// The datasets in a folder and its subfolders.
std::vector<std::string> datasets_in(const fs::path& folder) {
  std::vector<std::string> found;
  std::error_code code;
  fs::recursive_directory_iterator each(folder, code);
  for (const fs::recursive_directory_iterator end; !code && each != end; each.increment(code)) {
    if (each->path().extension() == ".idx") found.push_back(without_extension(each->path()));
  }
  if (code) throw io_error(folder, "read", code.value());
  if (found.empty()) throw config_error(folder.string() + ": this folder has no dataset, no .idx");
  std::ranges::sort(found);
  return found;
}

struct free_glob {
  void operator()(glob_t* found) const { ::globfree(found); }
};

/// The paths that match a pattern, sorted.
std::vector<std::string> matches_of(const std::string& pattern) {
  glob_t found{};
  const std::unique_ptr<glob_t, free_glob> freed(&found);
  const int code = ::glob(pattern.c_str(), GLOB_ERR, nullptr, &found);
  if (code == GLOB_NOMATCH) return {};
  if (code != 0) throw io_error(pattern, "glob", code == GLOB_NOSPACE ? ENOMEM : EACCES);
  return {found.gl_pathv, found.gl_pathv + found.gl_pathc};
}

/// The datasets that a pattern matches: by their prefixes, or by the names of their files.
std::vector<std::string> datasets_like(const std::string& pattern) {
  std::vector<std::string> found;
  for (const std::string& path : matches_of(pattern + ".idx")) {
    found.push_back(without_extension(path));
  }
  for (const std::string& path : matches_of(pattern)) {
    std::error_code ignored;
    if (fs::is_directory(path, ignored)) {
      const auto inside = datasets_in(path);
      found.insert(found.end(), inside.begin(), inside.end());
    } else if (fs::path(path).extension() == ".idx") {
      found.push_back(without_extension(path));
    }
  }
  if (found.empty()) throw config_error(pattern + ": no dataset matches this pattern");
  std::ranges::sort(found);
  return found;
}

std::vector<std::string> datasets_of(const std::string& word) {
  std::error_code ignored;
  if (exists(word + ".idx")) return {word};
  if (fs::is_directory(word, ignored)) return datasets_in(word);
  if (fs::path(word).extension() == ".idx" && exists(word)) return {without_extension(word)};
  if (word.find_first_of("*?[") != std::string::npos) return datasets_like(word);
  suggest_dataset(word);
  return {word};
}

}  // namespace

std::vector<std::string> dataset_prefixes(std::span<const std::string> words) {
  std::vector<std::string> all;
  std::set<std::string> seen;
  for (const std::string& word : dataset::parse_blend_list(words, "PREFIX").prefixes) {
    for (std::string& prefix : datasets_of(word)) {
      if (seen.insert(prefix).second) all.push_back(std::move(prefix));
    }
  }
  return all;
}

bool are_several(std::span<const std::string> words) {
  if (words.size() > 1) return true;
  if (exists(words.front() + ".idx")) return false;
  std::error_code ignored;
  return fs::is_directory(words.front(), ignored) ||
         words.front().find_first_of("*?[") != std::string::npos;
}

}  // namespace millrace::inspect
