// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace millrace::preprocess {

/// The lines of a text, as Python's universal newlines have them: `\n`, `\r\n` and `\r` alone end
/// a line, nothing else does. The last line may lack its end.
class line_splitter {
 public:
  explicit line_splitter(std::string_view text) : text_(text) { find_return(); }

  /// The next line, without its end; false when there is none.
  bool next(std::string_view& line) {
    if (at_ == text_.size()) return false;
    const std::size_t feed = find('\n', at_);
    const std::size_t end = return_ < feed ? return_ : feed;
    line = text_.substr(at_, end - at_);
    if (end == text_.size()) {
      at_ = end;
    } else if (end == feed) {
      at_ = end + 1;
    } else {
      at_ = end + (feed == end + 1 ? 2 : 1);
      find_return();
    }
    return true;
  }

 private:
  std::size_t find(char c, std::size_t from) const {
    const void* at = std::memchr(text_.data() + from, c, text_.size() - from);
    if (at == nullptr) return text_.size();
    return static_cast<std::size_t>(static_cast<const char*>(at) - text_.data());
  }
  // Most texts have no '\r', so the next one is looked for once, not once a line.
  void find_return() { return_ = find('\r', at_); }

  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t return_ = 0;  // the next '\r' at or behind at_, or the end
};

}  // namespace millrace::preprocess
