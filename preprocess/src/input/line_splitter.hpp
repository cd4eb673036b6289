// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace millrace::preprocess {

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
  // Position of the next `c` at or after at_; the size of the text if there is none.
  std::size_t find(char c) const {
    const std::size_t found = text_.find(c, at_);
    return found == text_.npos ? text_.size() : found;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  // Positions of the next `\n` and `\r` at or after at_. Both are cached: most texts have only one
  // of the two characters, and searching for the other one again in every line would take quadratic
  // time.
  std::size_t feed_;
  std::size_t return_;
};

}  // namespace millrace::preprocess
