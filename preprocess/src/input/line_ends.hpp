// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

/// Where a text and its lines begin: `\n`, `\r\n` and `\r` alone end a line.
namespace millrace::preprocess {

/// U+FEFF as the first character of a file says that it is UTF-8, and is no part of the text.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// Bytes of the mark that the text of a file begins with.
inline std::size_t mark_bytes_of(std::string_view text) {
  return text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
}

/// Where the line begins that follows the first line end at or behind `from`.
///
/// @param complete  nothing follows `text`. If something does, a `\r` at its very end tells
///                  nothing yet: its `\n` may come.
/// @return npos if there is no such place, or none yet.
inline std::size_t next_line(std::string_view text, std::size_t from, bool complete) {
  const std::size_t feed = text.find('\n', from);
  const std::size_t back = text.substr(0, std::min(feed, text.size())).find('\r', from);
  if (back == text.npos) return feed == text.npos ? feed : feed + 1;
  if (back + 1 < text.size()) return text[back + 1] == '\n' ? back + 2 : back + 1;
  return complete ? back + 1 : text.npos;
}

/// Where the last line of `text` begins that has no end in it: 0, or behind a line end.
///
/// @param complete  as above; for a `\r` at the very end
inline std::size_t last_line(std::string_view text, bool complete) {
  if (!complete && text.ends_with('\r')) text.remove_suffix(1);
  const std::size_t feed = text.rfind('\n');
  const std::size_t behind = feed == text.npos ? 0 : feed + 1;
  const std::size_t back = text.substr(behind).rfind('\r');
  return back == text.npos ? behind : behind + back + 1;
}

/// Whether a text whose last byte was `last`, when it ended, still ends a line there now that the
/// byte `next` follows.
inline bool ends_line(char last, char next) {
  return last == '\n' || (last == '\r' && next != '\n');
}

/// Bytes of the line end that `line` has at its end.
inline std::size_t line_end_bytes(std::string_view line) {
  if (line.ends_with("\r\n")) return 2;
  return line.ends_with('\n') || line.ends_with('\r') ? 1 : 0;
}

}  // namespace millrace::preprocess
