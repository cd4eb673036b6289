// SPDX-License-Identifier: Apache-2.0
#include "split/r50k_split.hpp"

#include <array>
#include <cstdint>

#include "unicode/unicode_classes.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

// Classes of the ASCII bytes, so that the table walk of class_of is for other scripts only.
constexpr std::array<char_class, 128> ascii_classes = [] {
  std::array<char_class, 128> classes{};
  for (std::size_t c = 0; c < classes.size(); ++c) {
    const bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    const bool number = c >= '0' && c <= '9';
    const bool space = c == ' ' || (c >= 0x9 && c <= 0xD);
    classes[c] = letter   ? char_class::letter
                 : number ? char_class::number
                 : space  ? char_class::space
                          : char_class::other;
  }
  return classes;
}();

struct classed {
  char_class kind;
  std::size_t size_bytes;
};

inline classed classed_at(std::string_view text, std::size_t at) noexcept {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return {ascii_classes[byte], 1};
  const code_point point = code_point_at(text, at);
  return {class_of(point.value), point.size_bytes};
}

inline std::size_t run_end(std::string_view text, std::size_t at, char_class kind) noexcept {
  while (at < text.size()) {
    const classed c = classed_at(text, at);
    if (c.kind != kind) break;
    at += c.size_bytes;
  }
  return at;
}

// Length of 's 't 'm 'd 're 've 'll at an apostrophe, or 0. Lower case only, unlike later patterns.
inline std::size_t contraction_size(std::string_view text, std::size_t at) noexcept {
  if (text.size() - at < 2) return 0;
  const char first = text[at + 1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (text.size() - at < 3) return 0;
  const char second = text[at + 2];
  if ((first == 'r' || first == 'v') && second == 'e') return 3;
  return first == 'l' && second == 'l' ? 3 : 0;
}

// `\s+(?!\S)|\s+`: the whole run at the end of the text; before anything else all but the last
// character, which goes with what follows (a space is glued to it, others stand alone).
inline std::size_t space_end(std::string_view text, std::size_t begin) noexcept {
  std::size_t last = begin;
  std::size_t end = begin;
  while (end < text.size()) {
    const classed c = classed_at(text, end);
    if (c.kind != char_class::space) break;
    last = end;
    end += c.size_bytes;
  }
  return end == text.size() || last == begin ? end : last;
}

}  // namespace

std::size_t r50k_end(std::string_view text, std::size_t begin) noexcept {
  if (text[begin] == '\'') {
    if (const std::size_t size = contraction_size(text, begin)) return begin + size;
  }
  const std::size_t body = text[begin] == ' ' && begin + 1 < text.size() ? begin + 1 : begin;
  const classed first = classed_at(text, body);
  if (first.kind == char_class::space) return space_end(text, begin);
  return run_end(text, body + first.size_bytes, first.kind);
}

}  // namespace millrace::tokenizer::detail
