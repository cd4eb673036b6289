// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cstddef>
#include <string>

namespace millrace::test {

/// Decodes a word that is written as pairs of hexadecimal digits. Hexadecimal is needed because a
/// word may contain any byte, even the separator between words.
inline std::string word_of(const std::string& hex) {
  std::string word;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    unsigned byte = 0;
    std::from_chars(hex.data() + i, hex.data() + i + 2, byte, 16);
    word += static_cast<char>(byte);
  }
  return word;
}

}  // namespace millrace::test
