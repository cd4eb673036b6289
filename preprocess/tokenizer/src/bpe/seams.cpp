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
// there. If `token` contains only a part of one of these characters, records that part.
void seam_finder::add(std::string_view token, std::size_t at) {
  std::size_t begin = at - 1;
  while (begin > 0 && is_continuation(token[begin])) --begin;
  std::size_t end = at + 1;
  while (end < token.size() && is_continuation(token[end])) ++end;
  const std::string_view left = token.substr(begin, at - begin);
  const std::string_view right = token.substr(at, end - at);
  if (is_whole(left) && is_whole(right)) {
    set(pairs_, of_pair(code_point_at(left, 0).value, code_point_at(right, 0).value));
  } else if (is_whole(left)) {
    set(right_parts_, of_part(code_point_at(left, 0).value, byte(right.front())));
  } else if (is_whole(right)) {
    set(left_parts_, of_part(code_point_at(right, 0).value, byte(left.back())));
  } else {
    set(both_parts_, byte(left.back()) << 8 | byte(right.front()));
  }
}

}  // namespace millrace::tokenizer::detail
