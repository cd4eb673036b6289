// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include "sentencepiece/model_file.hpp"

/// Writes SentencePiece model files for tests, field by field.
namespace millrace::test {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}

inline std::string number_field(unsigned number, std::uint64_t value) {
  return varint(number << 3) + varint(value);
}

inline std::string bytes_field(unsigned number, std::string_view bytes) {
  return varint(number << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

inline std::string float_field(unsigned number, float value) {
  char bits[4];
  std::memcpy(bits, &value, sizeof bits);
  return varint(number << 3 | 5) + std::string(bits, sizeof bits);
}

inline std::string piece(
    std::string_view text, float score = 0,
    tokenizer::detail::piece_type type = tokenizer::detail::piece_type::normal) {
  return bytes_field(1, bytes_field(1, text) + float_field(2, score) +
                            number_field(3, static_cast<std::uint64_t>(type)));
}

inline std::string unknown_piece() {
  return piece("<unk>", 0, tokenizer::detail::piece_type::unknown);
}

/// A trainer message with model type 1 (unigram) or 2 (BPE), and with any further fields.
inline std::string trainer(unsigned type, std::string_view fields = {}) {
  return bytes_field(2, number_field(3, type) + std::string(fields));
}

/// A normalizer message that changes only the form of spaces, with any further fields.
inline std::string plain_normalizer(std::string_view fields = {}) {
  return bytes_field(3, number_field(3, 0) + number_field(4, 0) + std::string(fields));
}

}  // namespace millrace::test
