// SPDX-License-Identifier: Apache-2.0
#include "tiktoken/list_json.hpp"

#include <algorithm>
#include <string>

#include <millrace/formats/utf8.hpp>

namespace millrace::tokenizer::detail {
namespace {

constexpr std::string_view white_space = " \t\r\n";
constexpr std::string_view scalar_characters = "+-.0123456789Eaeflnrstu";  // numbers, true, null

class walker {
 public:
  explicit walker(std::string_view json) : json_(json) {}

  std::size_t at() const noexcept { return at_; }

  bool next_is(char c) const noexcept { return at_ < json_.size() && json_[at_] == c; }

  void skip_space() { at_ = std::min(json_.find_first_not_of(white_space, at_), json_.size()); }

  bool take(char c) {
    skip_space();
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }

  // Takes a value of any kind. Without recursion, so that no depth is too much.
  bool take_value() {
    std::string open;  // the brackets around this place
    for (;;) {
      skip_space();
      if (next_is('{') || next_is('[')) {
        open += json_[at_++];
        skip_space();
        if (!next_is(closing(open.back()))) {
          if (open.back() == '{' && !take_key()) return false;
          continue;
        }
      } else if (!take_scalar()) {
        return false;
      }
      for (;;) {  // a value ends here, or, with its bracket next, the list or object of it
        if (!open.empty() && take(closing(open.back()))) {
          open.pop_back();
          continue;
        }
        if (open.empty()) return true;
        if (!take(',') || (open.back() == '{' && !take_key())) return false;
        break;
      }
    }
  }

 private:
  static char closing(char bracket) { return bracket == '{' ? '}' : ']'; }

  bool take_key() { return take_string() && take(':'); }

  bool take_string() {
    if (!take('"')) return false;
    while (at_ < json_.size() && json_[at_] != '"') {
      const auto byte = static_cast<unsigned char>(json_[at_]);
      const std::size_t size = byte < 0x20 ? 0 : formats::utf8_sequence_bytes(json_.substr(at_));
      if (size == 0) return false;
      at_ += size;
      if (byte == '\\' && at_ < json_.size()) ++at_;  // the escaped character, perhaps a quote
    }
    return take('"');
  }

  bool take_scalar() {
    if (next_is('"')) return take_string();
    const std::size_t from = at_;
    at_ = std::min(json_.find_first_not_of(scalar_characters, at_), json_.size());
    return at_ > from;
  }

  std::string_view json_;
  std::size_t at_ = 0;
};

}  // namespace

std::size_t list_json_end(std::string_view json) {
  walker walk(json);
  if (walk.take_value()) walk.skip_space();
  return walk.at();
}

std::size_t list_json_entry(std::string_view json, std::size_t entry) {
  walker walk(json);
  if (!walk.take('[')) return list_json_end(json);
  for (std::size_t i = 0;; ++i) {
    walk.skip_space();
    if (i == entry && !walk.next_is(']')) return walk.at();
    if (!walk.take_value() || !walk.take(',')) return list_json_end(json);
  }
}

}  // namespace millrace::tokenizer::detail
