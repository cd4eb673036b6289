// SPDX-License-Identifier: Apache-2.0
#include "input/input_plan.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <map>
#include <set>
#include <string_view>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

#include "input/file_format.hpp"
#include "input/input_arguments.hpp"
#include "input/table_input.hpp"

namespace millrace::preprocess {
namespace {

void check_name(const input_file& file) {
  const std::string suffix = file.path.extension().string();
  const compression expected = compression_of_suffix(suffix);
  if (expected == compression::none || expected == file.compressed_with) return;
  // An empty file is a text without lines, but no writer makes an empty Parquet file.
  if (file.size_bytes == 0 && expected != compression::parquet) return;
  throw config_error(
      fmt::format("{}: the name ends in {}, but the first bytes are not those of such a file; "
                  "expected {}, or a file with another name",
                  file.path.string(), suffix, first_bytes_of(expected)));
}

// Refuses the token file (.bin) of a dataset. A token file has no signature, so this function
// examines the .idx file in the same folder.
void expect_no_tokens(const std::filesystem::path& path) {
  if (path.extension() != ".bin") return;
  const auto index = std::filesystem::path(path).replace_extension(".idx");
  std::array<std::byte, foreign_head_bytes> buffer{};
  try {
    const io::unique_fd fd = io::open_read_only(index);
    const auto head = std::span(buffer).first(io::pread_some(fd, buffer, 0, index));
    if (!is_dataset_index(head)) return;
  } catch (const io_error&) {
    return;  // no readable index
  }
  throw config_error(
      fmt::format("{}: the tokens of a dataset (its .idx is in the same folder), not text; {}",
                  path.string(), leave_out_dataset));
}

// Describes stdin. If stdin is redirected from a file, also sets the number of remaining bytes, for
// the progress bar.
input_file look_at_stdin(std::uint64_t most_window_bytes) {
  input_file file{.path = "-", .most_window_bytes = most_window_bytes};
  struct ::stat status {};
  if (::fstat(STDIN_FILENO, &status) != 0) throw io_error("stdin", "fstat", errno);
  if (S_ISDIR(status.st_mode)) throw io_error("stdin", "read", EISDIR);
  if (!S_ISREG(status.st_mode)) return file;
  const ::off_t at = ::lseek(STDIN_FILENO, 0, SEEK_CUR);
  if (at >= 0 && at < status.st_size) {
    file.size_bytes = static_cast<std::uint64_t>(status.st_size - at);
  }
  return file;
}

input_file look_at_file(const std::string& name, const struct ::stat& status,
                        std::uint64_t most_window_bytes,
                        const std::shared_ptr<const table_columns>& columns) {
  input_file file{.path = name, .most_window_bytes = most_window_bytes};
  // Do not open a pipe here. Closing it again would kill the program that writes to it, and the
  // data already written would be lost.
  if (!S_ISREG(status.st_mode)) return file;
  const io::unique_fd fd = io::open_read_only(file.path);
  file.regular = true;
  file.size_bytes = static_cast<std::uint64_t>(status.st_size);
  std::array<std::byte, foreign_head_bytes> buffer{};
  const auto head = std::span(buffer).first(io::pread_some(fd, buffer, 0, file.path));
  file.compressed_with = compression_of(head);
  if (file.compressed_with == compression::none) {
    expect_no_tokens(file.path);
    expect_text(head, name);
  }
  check_name(file);
  expect_library_for(file.compressed_with, name);
  if (const auto window = zstd_window_of(head);
      window && file.compressed_with == compression::zstd) {
    expect_zstd_window(*window, most_window_bytes, name);
    file.window_bytes = window->memory_bytes;
  }
  if (file.has_rows()) {
    file.columns = columns;
    table_input{file};  // checks the footer and the columns
  }
  return file;
}

/// Collects the files of the arguments, in order.
class planner {
 public:
  explicit planner(const plan_options& options)
      : options_(options), columns_(std::make_shared<table_columns>(options.columns)) {}

  void add(const std::string& argument) {
    if (argument.size() > 1 && argument.front() == '@' && !exists(argument)) {
      for (const std::string& each : expand_list(argument.substr(1))) add_files(each);
    } else {
      add_files(argument);
    }
  }

  std::vector<input_file> files;

 private:
  void add_files(const std::string& argument) {
    if (argument == "-") return add_stdin();
    struct ::stat status {};
    if (::stat(argument.c_str(), &status) == 0) {
      if (!S_ISDIR(status.st_mode)) return add_file(argument, status);
      return add_folder(argument);
    }
    if (argument.find_first_of("*?[") == argument.npos || exists(argument)) {
      return add_file(argument);  // throws the proper error if the file does not exist
    }
    const auto paths = expand_pattern(argument);
    if (paths.empty()) {
      throw config_error(fmt::format("--input {}: no file matches this pattern", argument));
    }
    for (const std::string& path : paths) add_file(path);
  }

  void add_folder(const std::string& folder) {
    std::vector<std::string> paths = expand_folder(folder);
    const auto is_table = [](const std::string& path) { return path.ends_with(".parquet"); };
    const auto others = std::stable_partition(paths.begin(), paths.end(), is_table);
    if (others != paths.begin() && others != paths.end()) {
      const auto records = std::find_if(others, paths.end(), may_have_records);
      if (records != paths.end()) {
        throw config_error(
            fmt::format("--input {}: this folder has Parquet files and others with records, such "
                        "as {}; name the files to read, such as '{}/*.parquet'",
                        folder, *records, folder));
      }
      if (options_.tell) {
        const auto more = paths.end() - others - 1;
        options_.tell(
            fmt::format("--input {}: only the Parquet files of this folder are read, not "
                        "{}{}",
                        folder, *others, more == 0 ? "" : fmt::format(" and {} more", more)));
      }
      paths.erase(others, paths.end());
    }
    tell_splits(folder, paths);
    for (const std::string& path : paths) add_file(path);
  }

  // Says so if a folder holds several splits of a data set, because one of them may be for tests.
  void tell_splits(const std::string& folder, const std::vector<std::string>& paths) const {
    std::map<std::string, std::set<std::string>> splits;  // and the patterns of each
    for (const std::string& path : paths) {
      if (const std::string split = split_of(path); !split.empty()) {
        const auto pattern = std::filesystem::path(path).replace_filename(split + "-*.parquet");
        splits[split].insert(pattern.string());
      }
    }
    if (splits.size() < 2 || !options_.tell) return;
    std::string names;
    for (const auto& [name, patterns] : splits) names += (names.empty() ? "" : ", ") + name;
    const auto train = splits.find("train");
    const auto& [name, patterns] = train != splits.end() ? *train : *splits.begin();
    options_.tell(fmt::format(
        "--input {}: all of its splits are read ({}); to read only {}, pass '{}'{}", folder, names,
        name, *patterns.begin(), patterns.size() == 1 ? "" : " and the same in its other folders"));
  }

  // The part before the numbers in SPLIT-00000-of-00002.parquet, as Hugging Face names the files of
  // a split. Empty for other names.
  static std::string split_of(const std::string& path) {
    constexpr std::string_view numbers = "-00000-of-00000.parquet";
    const std::string name = std::filesystem::path(path).filename().string();
    if (name.size() <= numbers.size()) return "";
    const std::size_t begin = name.size() - numbers.size();
    const auto is_same = [](char found, char wanted) {
      return wanted == '0' ? found >= '0' && found <= '9' : found == wanted;
    };
    const bool fits = std::equal(name.begin() + static_cast<std::ptrdiff_t>(begin), name.end(),
                                 numbers.begin(), numbers.end(), is_same);
    return fits ? name.substr(0, begin) : "";
  }

  // Whether a file beside Parquet files may hold records too, by its name.
  static bool may_have_records(const std::string& path) {
    for (std::filesystem::path name = std::filesystem::path(path).filename(); name.has_extension();
         name = name.stem()) {
      const std::string suffix = name.extension().string();
      if (suffix == ".jsonl" || suffix == ".ndjson") return true;
      if (compression_of_suffix(suffix) == compression::none) break;
    }
    return false;
  }

  void add_file(const std::string& path) {
    struct ::stat status {};
    if (::stat(path.c_str(), &status) != 0) throw io_error(path, "open", errno);
    if (S_ISDIR(status.st_mode)) throw io_error(path, "open", EISDIR);
    add_file(path, status);
  }

  void add_file(const std::string& path, const struct ::stat& status) {
    if (options_.expect_input) options_.expect_input(path);
    files.push_back(look_at_file(path, status, options_.most_window_bytes, columns_));
  }

  void add_stdin() {
    if (has_stdin_) {
      throw config_error("--input -: stdin is given twice, but can be read only once");
    }
    has_stdin_ = true;
    files.push_back(look_at_stdin(options_.most_window_bytes));
  }

  const plan_options& options_;
  std::shared_ptr<const table_columns> columns_;
  bool has_stdin_ = false;
};

}  // namespace

std::filesystem::path display_path(const input_file& file) {
  return file.is_stdin() ? std::filesystem::path("stdin") : file.path;
}

std::vector<input_file> plan_inputs(std::span<const std::string> arguments,
                                    const plan_options& options) {
  planner plan(options);
  for (const std::string& argument : arguments) plan.add(argument);
  return std::move(plan.files);
}

}  // namespace millrace::preprocess
