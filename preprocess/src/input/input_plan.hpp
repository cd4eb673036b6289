// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "input/file_format.hpp"
#include "input/zstd_frames.hpp"

namespace millrace::preprocess {

/// The columns that a run reads from Parquet files.
struct table_columns {
  /// The keys to each column from the outermost on, as in a record of JSON.
  std::vector<std::vector<std::string>> paths;
  bool all = true;  ///< a file without one of them is refused; otherwise, one without any of them
};

struct input_file {
  std::filesystem::path path;  ///< "-" is stdin; a file with the name "-" is "./-"
  /// For a regular file, detected from its first bytes. For pipes and stdin, always `none`: their
  /// compression is detected when they are read.
  compression compressed_with = compression::none;
  std::uint64_t size_bytes = 0;  ///< size on disk; 0 if it is unknown (a pipe)
  bool regular = false;  ///< a regular file, which can be read more than once and from any byte
  /// Memory that the window of the file's first zstd frame takes; 0 if the file is not zstd.
  std::uint64_t window_bytes = 0;
  /// The value of `--zstd-memory`: a zstd frame whose window takes more memory is refused.
  std::uint64_t most_window_bytes = most_zstd_window_bytes;
  std::shared_ptr<const table_columns> columns = nullptr;  ///< only for a Parquet file

  /// Whether this is a Parquet file. Its text is one line of JSON per row, and offsets in it count
  /// rows instead of bytes.
  bool has_rows() const { return compressed_with == compression::parquet; }
  bool is_stdin() const { return path == "-"; }
};

/// The name of an input for messages: its path, or "stdin".
std::filesystem::path display_path(const input_file& file);

struct plan_options {
  /// Called for each file before it is opened; throws to refuse the file. It refuses the outputs of
  /// this run, which cannot be recognized by their bytes.
  std::function<void(const std::filesystem::path&)> expect_input = {};
  /// The value of input_file::most_window_bytes for all files.
  std::uint64_t most_window_bytes = most_zstd_window_bytes;
  table_columns columns = {.paths = {{"text"}}};
  /// Called with a sentence about files of a folder that are left out.
  std::function<void(const std::string&)> tell = {};
};

/// Expands the arguments of `--input` to the list of files to read, in the order of the arguments.
/// An argument may be:
///
/// - an existing file: that file, whatever characters its name contains;
/// - a folder: all regular files in it and its subfolders, sorted by byte value of the whole path,
///   except files and folders whose name begins with '.'. Links to files are followed. Links to
///   folders are refused, because they can form loops. If the names of some files end in .parquet,
///   the other files are left out, as in a snapshot of a data set from Hugging Face;
/// - `-`: stdin, at most once;
/// - `@FILE`: the arguments in FILE, one per line. Blank lines are ignored, and `\r\n` also ends a
///   line. Names are relative to the current folder. No line may begin with `@`;
/// - a pattern with `*`, `?` or `[...]`: the matching files, sorted by byte value.
///
/// @throws config_error  a pattern matches nothing; a folder or list is empty; stdin is named
///                       twice; a list names another list; a name ends in .gz, .zst, .bz2 or .xz
///                       but the bytes are something else; this build has no library for the
///                       compression; a file is not UTF-8 text, or belongs to a dataset; the first
///                       zstd frame of a file needs more memory than `most_window_bytes`; a
///                       Parquet file is encrypted, or lacks a column or has one of a type that
///                       cannot be read; a folder has files of Parquet and of JSON.
/// @throws format_error  the footer of a Parquet file is damaged.
/// @throws io_error      a file is missing or unreadable, or a pattern matches a folder.
std::vector<input_file> plan_inputs(std::span<const std::string> arguments,
                                    const plan_options& options = {});

}  // namespace millrace::preprocess
