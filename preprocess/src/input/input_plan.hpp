// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "input/compression.hpp"
#include "input/zstd_window.hpp"

namespace millrace::preprocess {

struct input_file {
  std::filesystem::path path;  ///< "-" is stdin; a file of that name is "./-"
  /// As its first bytes tell, of a regular file; none for others (a pipe, stdin), whose compression
  /// is told when they are read.
  compression compressed_with = compression::none;
  std::uint64_t size_bytes = 0;  ///< on disk; 0 where it cannot be known (a pipe)
  bool regular = false;          ///< may be read from any byte, more than once
  /// Memory that the window of its first zstd frame takes; 0 where it is something else.
  std::uint64_t window_bytes = 0;
  /// `--zstd-memory`: a zstd frame whose window takes more is refused.
  std::uint64_t most_window_bytes = most_zstd_window_bytes;

  bool is_stdin() const { return path == "-"; }
};

/// How messages call it: its path, or "stdin".
std::filesystem::path display_path(const input_file& file);

/// Turns the arguments of `--input` into the files to read, in the order to read them: arguments as
/// given, and for each
///
/// - that names an existing file: this file, whatever characters the name has;
/// - that names a folder: all regular files in it and in the folders below it, sorted by byte value
///   of the whole path, but for files and folders whose name begins with '.'. Links to files are
///   followed, links to folders are refused: in a loop there would be no end;
/// - `-`: stdin, at most once;
/// - `@FILE`: the arguments in FILE, one a line (blank lines are passed over, `\r\n` ends one,
///   too), names being relative to the current folder; `@` in FILE is part of a name;
/// - with `*`, `?` or `[...]`: the files that match the pattern, sorted by byte value.
///
/// @param most_window_bytes  input_file::most_window_bytes, of all of them
/// @param expect_input  asked of each file before it is opened, to refuse it by an exception; its
///                      bytes would not tell who wrote it
/// @throws config_error  a pattern matches nothing, a folder or list is empty, stdin is named
///                       twice, a list is named in a list, or a name ends in .gz, .zst, .bz2 or
///                       .xz and the bytes are something else, or this build has no library for
///                       them; a file is no text of UTF-8, or is of a dataset; the first zstd
///                       frame of a file needs more memory than `most_window_bytes`.
/// @throws io_error      a file is missing or unreadable, or is a folder that a pattern matches.
std::vector<input_file> plan_inputs(
    std::span<const std::string> arguments,
    const std::function<void(const std::filesystem::path&)>& expect_input = {},
    std::uint64_t most_window_bytes = most_zstd_window_bytes);

}  // namespace millrace::preprocess
