// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "input/input_plan.hpp"

/// Functions that find where a text begins and where its lines begin and end. A line ends with
/// `\n`, `\r\n` or a lone `\r`.
namespace millrace::preprocess {

/// The character U+FEFF in UTF-8. At the start of a file, it marks the file as UTF-8 and is not
/// part of the text.
inline constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

/// Size in bytes of the byte order mark at the start of a file's text; 0 if there is none.
inline std::size_t mark_bytes_of(std::string_view text) {
  return text.starts_with(byte_order_mark) ? byte_order_mark.size() : 0;
}

/// Finds the first line end at or after `from` and returns the position after it.
///
/// @param complete  true if nothing follows `text`. If false, a `\r` as the last byte of `text`
///                  does not count as a line end yet, because a `\n` may follow it.
/// @return npos if no line ends at or after `from`.
inline std::size_t next_line(std::string_view text, std::size_t from, bool complete) {
  const std::size_t feed = text.find('\n', from);
  const std::size_t back = text.substr(0, std::min(feed, text.size())).find('\r', from);
  if (back == text.npos) return feed == text.npos ? feed : feed + 1;
  if (back + 1 < text.size()) return text[back + 1] == '\n' ? back + 2 : back + 1;
  return complete ? back + 1 : text.npos;
}

/// Returns the start of the unterminated last line of `text`: 0, or the position after the last
/// line end.
///
/// @param complete  as in next_line()
inline std::size_t last_line(std::string_view text, bool complete) {
  if (!complete && text.ends_with('\r')) text.remove_suffix(1);
  const std::size_t feed = text.rfind('\n');
  const std::size_t behind = feed == text.npos ? 0 : feed + 1;
  const std::size_t back = text.substr(behind).rfind('\r');
  return back == text.npos ? behind : behind + back + 1;
}

/// Returns whether a line ends between two adjacent bytes, `last` and `next`.
inline bool ends_line(char last, char next) {
  return last == '\n' || (last == '\r' && next != '\n');
}

/// Size in bytes of the line end at the end of `line`; 0 if it has none.
inline std::size_t line_end_bytes(std::string_view line) {
  if (line.ends_with("\r\n")) return 2;
  return line.ends_with('\n') || line.ends_with('\r') ? 1 : 0;
}

/// Splits a text into lines as Python's universal newlines do: only `\n`, `\r\n` and a lone `\r`
/// end a line. The last line may lack its line end.
class line_splitter {
 public:
  explicit line_splitter(std::string_view text)
      : text_(text), feed_(find('\n')), return_(find('\r')) {}

  /// Gets the next line, without its line end. Returns false if there is no next line.
  bool next(std::string_view& line) {
    if (at_ == text_.size()) return false;
    const std::size_t end = feed_ < return_ ? feed_ : return_;
    line = text_.substr(at_, end - at_);
    at_ = end;
    if (at_ == text_.size()) return true;
    if (text_[at_] == '\r') {
      ++at_;
      return_ = find('\r');
      if (at_ == text_.size() || text_[at_] != '\n') return true;
    }
    ++at_;
    feed_ = find('\n');
    return true;
  }

 private:
  // Returns the position of the first `c` at or after at_, or the size of the text.
  std::size_t find(char c) const {
    const std::size_t found = text_.find(c, at_);
    return found == text_.npos ? text_.size() : found;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  // Positions of the next `\n` and `\r` at or after at_. Both are cached, because most texts
  // contain only one of the two characters. Searching the whole rest of the text for the missing
  // character at every line would take quadratic time.
  std::size_t feed_;
  std::size_t return_;
};

/// Returns the number of lines before `begin` in an uncompressed file. Returns an empty optional if
/// the input is not an uncompressed file or cannot be read. Reads everything before `begin`, so use
/// this only for messages.
///
/// @pre a line begins at `begin`
std::optional<std::int64_t> lines_before(const input_file& file, std::uint64_t begin);

}  // namespace millrace::preprocess
