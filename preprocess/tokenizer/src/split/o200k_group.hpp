// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "split/walk.hpp"

namespace millrace::tokenizer::detail {

/// The differences between the patterns of the group.
struct o200k_rules {
  std::size_t numbers_at_most = 3;  ///< 3: `\p{N}{1,3}`, 1: `\p{N}`
  bool contractions = true;         ///< `(?i:'s|'t|...)?` ends a word
  bool slash_in_tail = true;        ///< `[\r\n/]*` follows punctuation, instead of `[\r\n]*`
  bool han_apart = false;  ///< `[\p{Han}]+` is the first alternative; words have no \p{Han}
  bool operator==(const o200k_rules&) const = default;
};

/// The pattern of GPT-4o and its derivatives:
///
///   P?[U]*[V]+C?|P?[U]+[V]*C?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+
///
/// Here P is [^\r\n\p{L}\p{N}], U is any mark or any letter except Ll, V is any mark or any letter
/// except Lu and Lt, and C is a contraction. A character that is in both U and V is called
/// caseless.
template <o200k_rules Rules>
struct o200k_group {
  static constexpr o200k_rules rules = Rules;
  static constexpr unsigned used_kinds = word_kinds | kind::newline | kind::upper | kind::lower |
                                         kind::mark | (Rules.han_apart ? kind::han : 0U);
  static constexpr contraction_case contractions =
      Rules.contractions ? contraction_case::either : contraction_case::none;
  static constexpr bool uses_slash = Rules.slash_in_tail;

  static unsigned kinds(std::uint32_t point) noexcept { return flags_of(point) & 0xFF; }

  /// Returns the end of the pretoken that begins at `begin`. Same contract as r50k_group::end.
  static std::size_t end(std::string_view text, std::size_t begin) noexcept {
    const walked_char first = char_at<o200k_group>(text, begin);
    const std::size_t second = begin + first.size_bytes;
    if (Rules.han_apart && (first.kinds & kind::han) != 0) {
      return run_end<o200k_group>(text, second, kind::han);
    }
    if (const std::size_t word = word_end(text, begin, first)) {
      return Rules.contractions ? word + contraction_size(text, word) : word;
    }
    if ((first.kinds & kind::number) != 0) {
      return run_end<o200k_group>(text, second, kind::number, Rules.numbers_at_most - 1);
    }
    const bool others = (first.kinds & kind::space) == 0;
    if (others || (text[begin] == ' ' && second < text.size() &&
                   (char_at<o200k_group>(text, second).kinds & word_kinds) == 0)) {
      const std::size_t tail = other_end<o200k_group>(text, second);
      return skip_any(text, tail, Rules.slash_in_tail ? "\r\n/" : "\r\n");
    }
    return newline_space_end(spaces_at<o200k_group>(text, begin));
  }

 private:
  static bool in_words(unsigned kinds) noexcept {
    if (Rules.han_apart && (kinds & kind::han) != 0) return false;
    return (kinds & (kind::letter | kind::mark)) != 0;
  }

  /// End of the word that begins at `begin`, without its contraction, or 0 if no word begins there.
  /// The order of attempts matters, because a mark can be the prefix of the word or part of it.
  static std::size_t word_end(std::string_view text, std::size_t begin,
                              walked_char first) noexcept {
    const std::size_t second = begin + first.size_bytes;
    const bool prefix = (first.kinds & (kind::letter | kind::number | kind::newline)) == 0 &&
                        second < text.size() && in_words(char_at<o200k_group>(text, second).kinds);
    const bool letter = in_words(first.kinds);
    std::size_t end = 0;
    if (prefix) end = mixed_end(text, second);
    if (end == 0 && letter) end = mixed_end(text, begin);
    if (end == 0 && prefix) end = upper_end(text, second);
    if (end == 0 && letter) end = upper_end(text, begin);
    return end;
  }

  /// End of the match of `[U]*[V]+` at `at`, or 0 if it does not match. After the first lower case
  /// letter, only [V]+ matches. If the word has no lower case letter, [U]* gives characters back
  /// until [V]+ matches the last caseless character.
  static std::size_t mixed_end(std::string_view text, std::size_t at) noexcept {
    bool lower_seen = false;
    std::size_t end = 0;
    while (at < text.size()) {
      const walked_char c = char_at<o200k_group>(text, at);
      if (!in_words(c.kinds)) break;
      at += c.size_bytes;
      if ((c.kinds & kind::upper) != 0) {
        if (lower_seen) break;
        continue;
      }
      lower_seen = lower_seen || (c.kinds & kind::lower) != 0;
      end = at;
    }
    return end;
  }

  /// End of the match of `[U]+[V]*` at `at`, or 0 if it does not match. Here `[V]*` matches
  /// nothing, because otherwise mixed_end would have matched.
  static std::size_t upper_end(std::string_view text, std::size_t at) noexcept {
    const std::size_t begin = at;
    while (at < text.size()) {
      const walked_char c = char_at<o200k_group>(text, at);
      if (!in_words(c.kinds) || (c.kinds & kind::lower) != 0) break;
      at += c.size_bytes;
    }
    return at > begin ? at : 0;
  }
};

}  // namespace millrace::tokenizer::detail
