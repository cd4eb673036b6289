// SPDX-License-Identifier: Apache-2.0
#include "core/added_tokens.hpp"

#include <algorithm>
#include <utility>

#include "unicode/reference_sets.hpp"
#include "unicode/unicode_classes.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

// Returns the offset at which the character before offset `at` begins.
std::size_t before(std::string_view text, std::size_t at) {
  do {
    --at;
  } while (at > 0 && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80);
  return at;
}

bool is_word(std::uint32_t point) {
  const inversion_list bounds = bounds_of(reference_set::rust_word);
  return (std::ranges::upper_bound(bounds, point) - bounds.begin()) % 2 == 1;
}

bool touches_word(std::string_view text, std::size_t begin, std::size_t end) {
  return (begin > 0 && is_word(code_point_at(text, before(text, begin)).value)) ||
         (end < text.size() && is_word(code_point_at(text, end).value));
}

bool is_space(code_point point) {
  return class_of(point.value) == char_class::space;
}

std::size_t skip_space_left(std::string_view text, std::size_t at) {
  while (at > 0) {
    const std::size_t last = before(text, at);
    if (!is_space(code_point_at(text, last))) break;
    at = last;
  }
  return at;
}

std::size_t skip_space_right(std::string_view text, std::size_t at) {
  while (at < text.size()) {
    const code_point point = code_point_at(text, at);
    if (!is_space(point)) break;
    at += point.size_bytes;
  }
  return at;
}

std::vector<std::string_view> contents_of(const std::vector<added_token>& tokens) {
  std::vector<std::string_view> contents;
  contents.reserve(tokens.size());
  for (const added_token& token : tokens) contents.push_back(token.content);
  return contents;
}

std::size_t pair_of(char first, char second) {
  return std::size_t{static_cast<unsigned char>(first)} << 8 | static_cast<unsigned char>(second);
}

char lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
}

// Marks each pair of adjacent bytes between which `token` forbids a cut. These are the pairs inside
// the token, and all pairs that begin with its last byte, because a new section begins after the
// token. If the match depends on the text before the token, these are also all pairs that end with
// its first byte.
void join_bytes(const added_token& token, std::bitset<65536>& joined) {
  const std::string& content = token.content;
  for (std::size_t i = 1; i < content.size(); ++i) {
    joined.set(pair_of(content[i - 1], content[i]));
  }
  const bool looks_left = token.single_word || token.strips_left;
  for (unsigned i = 0; i < 256; ++i) {
    const auto other = static_cast<char>(i);
    joined.set(pair_of(content.back(), other));
    if (looks_left) joined.set(pair_of(other, content.front()));
  }
}

}  // namespace

added_token_finder::added_token_finder(std::vector<added_token> tokens)
    : tokens_(std::move(tokens)), begins_(contents_of(tokens_)) {
  for (std::size_t i = 0; i < tokens_.size(); ++i) {
    contents_.add(tokens_[i].content, static_cast<std::int32_t>(i));
    join_bytes(tokens_[i], joined_);
  }
}

bool added_token_finder::may_cut(std::string_view text, std::size_t at) const noexcept {
  return empty() || !(joined_[pair_of(text[at - 1], text[at])] ||
                      joined_[pair_of(lower(text[at - 1]), lower(text[at]))]);
}

std::optional<added_token_finder::match> added_token_finder::next(std::string_view text,
                                                                  std::size_t from,
                                                                  std::size_t taken) const {
  for (std::size_t at = from; (at = begins_.next(text, at)) < text.size();) {
    std::int32_t longest = token_trie::none;
    std::size_t end = at;
    token_trie::node node = token_trie::root;
    for (std::size_t i = at; i < text.size();) {
      node = contents_.next(node, static_cast<unsigned char>(text[i++]));
      if (node == token_trie::nowhere) break;
      if (contents_.token(node) == token_trie::none) continue;
      longest = contents_.token(node);
      end = i;
    }
    if (longest == token_trie::none) {
      ++at;
      continue;
    }
    const added_token& token = tokens_[static_cast<std::size_t>(longest)];
    if (token.stays_text || (token.single_word && touches_word(text, at, end))) {
      at = end;
      continue;
    }
    match found{at, end, token.id, token.special, end};
    if (token.strips_left) found.begin = std::max(skip_space_left(text, at), taken);
    if (token.strips_right) found.end = skip_space_right(text, end);
    return found;
  }
  return std::nullopt;
}

}  // namespace millrace::tokenizer::detail
