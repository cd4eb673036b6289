// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace millrace::tokenizer::detail {

/// `text` for a message: in quotes, printable ASCII as it is, other bytes as \xNN, cut after 40
/// `limit` bytes.
inline std::string in_quotes(std::string_view text, std::size_t limit = 40) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out = "'";
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) {
      out += c;
    } else {
      out += {'\\', 'x', digits[byte >> 4], digits[byte & 15]};
    }
  }
  return out + (text.size() > limit ? "'..." : "'");
}

}  // namespace millrace::tokenizer::detail
