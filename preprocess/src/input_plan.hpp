// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace millrace::preprocess {

/// How the bytes of an input are packed, told by their first bytes, not by the file's name.
enum class compression : std::uint8_t { none, gzip, zstd };

struct input_file {
  std::filesystem::path path;
  compression packing = compression::none;
  std::uint64_t size_bytes = 0;  ///< on disk; 0 where it cannot be known (a pipe)
};

/// Turns the arguments of `--input` into the files to read, in the order to read them: arguments
/// as given, the matches of each pattern (`*`, `?`, `[...]`) sorted by byte value. An argument
/// that names an existing file is taken as it is, whatever characters it has.
///
/// @throws config_error  a pattern matches nothing, or a name ends in .gz or .zst and the bytes
///                       are something else.
/// @throws io_error      a file is missing, unreadable or a directory.
std::vector<input_file> plan_inputs(std::span<const std::string> arguments);

}  // namespace millrace::preprocess
