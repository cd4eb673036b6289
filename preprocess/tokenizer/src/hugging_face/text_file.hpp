// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include <millrace/error.hpp>
#include <millrace/io/file_mapping.hpp>

#include "hugging_face/hugging_face_tokenizer.hpp"
#include "unicode/unicode_classes.hpp"

namespace millrace::tokenizer::detail {

/// Calls `read` with the text of a file; what it finds wrong gets the path of the file.
///
/// Real files have a few megabytes; what is larger than a gigabyte was given by mistake, and
/// reading it would take many times its size.
/// @throws io_error, and what `read` throws
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

/// What of a tokenizer's identity is not in its files, for fingerprints.
inline std::string identity_of(const hugging_face_options& options) {
  std::string identity = std::string("include_special_tokens ") +
                         (options.include_special_tokens ? "yes" : "no") + "\nin_text " +
                         std::to_string(static_cast<int>(options.in_text)) + "\nunicode " +
                         unicode_version + "\n";
  for (const std::string& token : options.special_tokens) {
    identity += "special " + std::to_string(token.size()) + " " + token + "\n";
  }
  return identity;
}

}  // namespace millrace::tokenizer::detail
