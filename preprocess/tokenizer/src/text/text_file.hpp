// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include <millrace/error.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::tokenizer::detail {

/// Calls `read` with the text of a file. Adds the path of the file to errors that `read` throws.
///
/// Real files have a few megabytes. A file above a gigabyte is a mistake by the user, and reading
/// it would take many times its size in memory, so it is refused.
/// @throws io_error      the file cannot be read. Also throws what `read` throws.
template <class Read>
auto with_text_of(const std::filesystem::path& path, Read read) {
  constexpr std::size_t max_bytes = std::size_t{1} << 30;
  const io::file_mapping mapping(path);
  const auto bytes = mapping.bytes();
  try {
    if (bytes.size() > max_bytes) {
      throw format_error(max_bytes, "the file is too large for a tokenizer's");
    }
    return read(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  } catch (const format_error& e) {
    throw e.path().empty() ? e.in(path) : e;
  } catch (const config_error& e) {
    throw config_error(path.string() + ": " + e.what());
  }
}

}  // namespace millrace::tokenizer::detail
