// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace millrace::preprocess {

/// The lines of a text, as Python's universal newlines have them: `\n`, `\r\n` and `\r` alone end
/// a line, nothing else does. The last line may lack its end.
class line_splitter {
 public:
  explicit line_splitter(std::string_view text)
      : text_(text), feed_(find('\n')), return_(find('\r')) {}

  /// The next line, without its end; false when there is none.
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
  // From at_ on; the end of the text if there is none.
  std::size_t find(char c) const {
    const std::size_t found = text_.find(c, at_);
    return found == text_.npos ? text_.size() : found;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  // The next of each at or behind at_. Both are kept: texts have one kind or the other, and a
  // search for the kind that is not there, from every line, would take time in proportion to the
  // square of the text.
  std::size_t feed_;
  std::size_t return_;
};

}  // namespace millrace::preprocess
