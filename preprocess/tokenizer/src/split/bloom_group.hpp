// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "split/local_cuts.hpp"

namespace millrace::tokenizer::detail {

/// BLOOM's pattern. Text between matches is kept as pretokens.
///
///    ?[^(\s|[.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C])]+
///
/// Oniguruma reads the inner brackets as a nested class, and reads all other characters in the
/// outer brackets literally. So parentheses and `|` end words too.
struct bloom_group {
  static constexpr unsigned used_kinds = kind::letter | kind::space;
  static constexpr contraction_case contractions = contraction_case::none;
  static constexpr bool uses_slash = false;

  /// Returns letter for characters of words, space for U+0020, and 0 for all other characters.
  static unsigned kinds(std::uint32_t point) noexcept {
    constexpr std::u32string_view ends = U"()|.,!?\u2026\u3002\uFF0C\u3001\u0964\u06D4\u060C";
    if (point == ' ') return kind::space;
    const bool is_space = (flags_of(point) & kind::space) != 0;
    return is_space || ends.find(char32_t{point}) != ends.npos ? 0U : unsigned{kind::letter};
  }

  static constexpr bool joins(unsigned kinds) noexcept { return kinds == kind::space; }

  static constexpr bool cuts_between(unsigned a, unsigned b, unsigned c) noexcept {
    if (joins(b) && c == kind::letter) return true;
    const bool word = b == kind::letter;
    return (a == kind::letter) != word && !(word && joins(a));
  }

  static std::size_t end(std::string_view text, std::size_t begin) noexcept {
    return local_end<bloom_group>(text, begin);
  }
};

}  // namespace millrace::tokenizer::detail
