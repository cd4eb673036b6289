// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Builds vocabularies of token ranks for tests.
namespace millrace::test {

inline std::string base64(std::string_view bytes) {
  constexpr std::string_view digits =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = bits << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      text += i + k <= bytes.size() ? digits[bits >> (18 - 6 * k) & 63] : '=';
    }
  }
  return text;
}

/// A vocabulary of all 256 single bytes, where byte b has rank b, followed by the test's own
/// tokens.
class rank_vocabulary {
 public:
  explicit rank_vocabulary(const std::vector<std::string>& more) {
    for (int byte = 0; byte < 256; ++byte) tokens_.emplace_back(1, static_cast<char>(byte));
    tokens_.insert(tokens_.end(), more.begin(), more.end());
  }

  /// Returns the contents of a `.tiktoken` file with this vocabulary.
  std::string rank_file() const {
    std::string text;
    for (std::size_t rank = 0; rank < tokens_.size(); ++rank) {
      text += base64(tokens_[rank]) + " " + std::to_string(rank) + "\n";
    }
    return text;
  }

  /// Returns the contents of a Megatron `.vocab.json` file with this vocabulary.
  std::string megatron_json() const {
    std::string text;
    for (std::size_t rank = 0; rank < tokens_.size(); ++rank) {
      text += (rank == 0 ? "[\n" : ",\n") + ("{\"rank\": " + std::to_string(rank)) +
              ", \"token_bytes\": \"" + base64(tokens_[rank]) + "\", \"token_str\": \"\"}";
    }
    return text + "]";
  }

 private:
  std::vector<std::string> tokens_;
};

}  // namespace millrace::test
