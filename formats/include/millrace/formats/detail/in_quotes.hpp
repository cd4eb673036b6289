// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include <millrace/formats/detail/hex.hpp>

namespace millrace::formats {

/// Quotes `text` for a message. Cuts the text after `limit` bytes. Printable ASCII characters are
/// unchanged; every other byte becomes \xNN.
inline std::string in_quotes(std::string_view text, std::size_t limit = 40) {
  std::string out = "'";
  for (const char c : text.substr(0, limit)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7F) {
      out += c;
    } else {
      out += {'\\', 'x', hex_digits[byte >> 4], hex_digits[byte & 15]};
    }
  }
  return out + (text.size() > limit ? "'..." : "'");
}

}  // namespace millrace::formats
