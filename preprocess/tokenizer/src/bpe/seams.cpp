// SPDX-License-Identifier: Apache-2.0
#include "bpe/seams.hpp"

#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

// The size in bytes of the UTF-8 character that begins with `lead`.
std::size_t size_of_character(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  return byte < 0x80 ? 1 : byte < 0xE0 ? 2 : byte < 0xF0 ? 3 : 4;
}

bool is_whole(std::string_view part) {
  return !is_continuation(part.front()) && part.size() == size_of_character(part.front());
}

}  // namespace

seam_finder::seam_finder(const token_table& tokens) : pairs_((std::size_t{1} << pair_bits) / 64) {
  for (std::int64_t id = 0; id < tokens.end_id(); ++id) {
    if (!tokens.has(id)) continue;
    const std::string_view token = tokens.bytes(id);
    for (std::size_t at = 1; at < token.size(); ++at) {
      if (!is_continuation(token[at])) add(token, at);
    }
  }
}

// Records the character that ends at offset `at` of `token` together with the character that begins
// there. `token` may contain only a part of one of these characters or of both.
void seam_finder::add(std::string_view token, std::size_t at) {
  std::size_t begin = at - 1;
  while (begin > 0 && is_continuation(token[begin])) --begin;
  std::size_t end = at + 1;
  while (end < token.size() && is_continuation(token[end])) ++end;
  const std::uint32_t right = character_at(token.data(), at, end).bytes;
  const bool right_is_whole = is_whole(token.substr(at, end - at));
  if (const std::string_view left = token.substr(begin, at - begin); is_whole(left)) {
    const std::uint32_t left_hash = hash(character_at(left.data(), 0, left.size()).bytes);
    if (right_is_whole) {
      pairs_[word_of(left_hash, right)] |= std::uint64_t{1} << bit_of(right);
      return;
    }
    for (const std::uint32_t second : {0x00U, 0x10U, 0x20U, 0x30U}) {
      pairs_[word_of(left_hash, (right & 0xFF) | second << 8)] = ~std::uint64_t{0};
    }
  } else {
    const std::uint64_t last_byte = std::uint64_t{1} << byte(token[at - 1]) % 64;
    if (right_is_whole) {
      last_bytes_[index_of(right)] |= last_byte;
      return;
    }
    for (std::uint32_t third = 0; third < 64; ++third) {
      last_bytes_[index_of((right & 0xFF) | third << 16)] |= last_byte;
    }
  }
}

}  // namespace millrace::tokenizer::detail
