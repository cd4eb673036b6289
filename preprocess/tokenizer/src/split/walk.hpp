// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "unicode/unicode_classes.hpp"
#include "unicode/utf8.hpp"

/// Code shared by the walkers of all patterns. A walker finds the end of one pretoken, one
/// character at a time. The faster splitters, which work on windows of 64 bytes, must give the same
/// ends.
///
/// Each matcher has a function `kinds(point)`. The function returns eight bits per character,
/// usually the low byte of the character's char_flags.
namespace millrace::tokenizer::detail {

using kind = char_flags;

inline constexpr unsigned word_kinds = kind::letter | kind::number | kind::space;

struct walked_char {
  unsigned kinds;
  std::size_t size_bytes;
};

/// The contractions that a pattern matches, by case.
enum class contraction_case : std::uint8_t { none, lower, either };

/// @pre at < text.size()
template <class Matcher>
walked_char char_at(std::string_view text, std::size_t at) noexcept {
  const code_point point = code_point_at(text, at);
  return {Matcher::kinds(point.value), point.size_bytes};
}

/// Returns the end of the run at offset `at`. The run consists of at most `limit` characters, each
/// with a kind in `mask`.
template <class Matcher>
std::size_t run_end(std::string_view text, std::size_t at, unsigned mask,
                    std::size_t limit = std::string_view::npos) noexcept {
  for (; at < text.size() && limit > 0; --limit) {
    const walked_char c = char_at<Matcher>(text, at);
    if ((c.kinds & mask) == 0) break;
    at += c.size_bytes;
  }
  return at;
}

/// Returns the end of the run at offset `at`. The run consists of characters that are not letters,
/// numbers or white space.
template <class Matcher>
std::size_t other_end(std::string_view text, std::size_t at) noexcept {
  while (at < text.size()) {
    const walked_char c = char_at<Matcher>(text, at);
    if ((c.kinds & word_kinds) != 0) break;
    at += c.size_bytes;
  }
  return at;
}

inline std::size_t skip_any(std::string_view text, std::size_t at, std::string_view any) noexcept {
  const std::size_t end = text.find_first_not_of(any, at);
  return end == std::string_view::npos ? text.size() : end;
}

/// A run of white space, with the data that the white space alternatives of a pattern need.
struct space_run {
  std::size_t begin;
  std::size_t end;
  std::size_t last;           ///< where its last character begins
  std::size_t after_newline;  ///< end of its last CR or LF; `begin` if there is none
  bool at_end;                ///< the text ends after the run, or the look-ahead assumes so
};

/// @param stop  kinds of characters that an earlier split has cut off; the look-ahead treats the
///              place before such a character as the end of the text
template <class Matcher>
space_run spaces_at(std::string_view text, std::size_t begin, unsigned stop = 0) noexcept {
  space_run run{begin, begin, begin, begin, true};
  while (run.end < text.size()) {
    const walked_char c = char_at<Matcher>(text, run.end);
    if ((c.kinds & kind::space) == 0) {
      run.at_end = (c.kinds & stop) != 0;
      break;
    }
    run.last = run.end;
    run.end += c.size_bytes;
    if ((c.kinds & kind::newline) != 0) run.after_newline = run.end;
  }
  return run;
}

/// Returns the end of the match of `\s+(?!\S)|\s+`. At the end of the text, or if the run is one
/// character, the match is the whole run. Otherwise, the match leaves out the last character of the
/// run.
inline std::size_t plain_space_end(const space_run& run) noexcept {
  return run.at_end || run.last == run.begin ? run.end : run.last;
}

/// Returns the end of the match of `\s*[\r\n]+|\s+(?!\S)|\s+`. The match ends after the last
/// newline of the run. If the run has no newline, the result is that of plain_space_end.
inline std::size_t newline_space_end(const space_run& run) noexcept {
  return run.after_newline > run.begin ? run.after_newline : plain_space_end(run);
}

/// Returns the size in bytes of the contraction at offset `at`, or 0 if there is none. The
/// contractions are 's 't 'm 'd 're 've and 'll, in lower case only.
inline std::size_t lower_contraction_size(std::string_view text, std::size_t at) noexcept {
  if (text.size() - at < 2 || text[at] != '\'') return 0;
  const char first = text[at + 1];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (text.size() - at < 3) return 0;
  const char second = text[at + 2];
  if ((first == 'r' || first == 'v') && second == 'e') return 3;
  return first == 'l' && second == 'l' ? 3 : 0;
}

/// Like lower_contraction_size, but in upper or lower case. U+017F (long s) folds to s, so it
/// counts as an s. No other character outside ASCII folds to a single letter of a contraction.
/// @pre at <= text.size()
inline std::size_t contraction_size(std::string_view text, std::size_t at) noexcept {
  if (text.size() - at < 2 || text[at] != '\'') return 0;
  const auto lower = [&](std::size_t i) { return static_cast<char>(text[at + i] | 0x20); };
  const char first = lower(1);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (text.size() - at < 3) return 0;
  if (text.substr(at + 1, 2) == "\u017F") return 3;
  if ((first == 'r' || first == 'v') && lower(2) == 'e') return 3;
  return first == 'l' && lower(2) == 'l' ? 3 : 0;
}

}  // namespace millrace::tokenizer::detail
