// SPDX-License-Identifier: Apache-2.0
#include "json/json_place.hpp"

#include <algorithm>
#include <string>

#include <millrace/formats/detail/utf8.hpp>

namespace millrace::tokenizer::detail {
namespace {

constexpr std::string_view white_space = " \t\r\n";
constexpr std::string_view scalar_characters = "+-.0123456789Eaeflnrstu";  // numbers, true, null

class walker {
 public:
  explicit walker(std::string_view json) : json_(json) {}

  std::size_t at() {
    skip_space();
    return at_;
  }

  // The offset where reading stopped because the expected text did not follow.
  std::size_t stopped_at() const { return at_; }

  // Moves to the beginning of an entry of the container that begins at the current position.
  // `entry` is its index. If there is no such entry, moves as far as possible and returns false.
  bool enter(std::size_t entry) {
    skip_space();
    const bool object = next_is('{');
    if (!object && !next_is('[')) return false;
    ++at_;
    for (std::size_t i = 0; i < entry; ++i) {
      if (object && !take_key()) return false;
      if (!take_value() || !take(',')) return false;
    }
    skip_space();
    inside_object_ = object;
    return true;
  }
  // Moves from the beginning of an entry to its value.
  bool to_value() { return !inside_object_ || take_key(); }

  // Reads a value of any type. Does not recurse, so the nesting depth is not limited.
  bool take_value() {
    std::string open;  // the open brackets around the current position
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
      while (!open.empty() && take(closing(open.back()))) open.pop_back();
      if (open.empty()) return true;
      if (!take(',') || (open.back() == '{' && !take_key())) return false;
    }
  }

  // Collects all numbers that are read from now on.
  void note_numbers(std::vector<std::string_view>& numbers) { numbers_ = &numbers; }

 private:
  bool is_number(std::size_t at) const {
    return at < at_ && (json_[at] == '-' || (json_[at] >= '0' && json_[at] <= '9'));
  }
  bool next_is(char c) const { return at_ < json_.size() && json_[at_] == c; }

  void skip_space() { at_ = std::min(json_.find_first_not_of(white_space, at_), json_.size()); }

  bool take(char c) {
    skip_space();
    if (!next_is(c)) return false;
    ++at_;
    return true;
  }

  bool take_key() { return take_string() && take(':'); }

  static char closing(char bracket) { return bracket == '{' ? '}' : ']'; }

  bool take_scalar() {
    if (next_is('"')) return take_string();
    const std::size_t from = at_;
    at_ = std::min(json_.find_first_not_of(scalar_characters, at_), json_.size());
    if (numbers_ != nullptr && is_number(from)) {
      numbers_->push_back(json_.substr(from, at_ - from));
    }
    return at_ > from;
  }

  bool take_string() {
    if (!take('"')) return false;
    while (at_ < json_.size() && json_[at_] != '"') {
      const auto byte = static_cast<unsigned char>(json_[at_]);
      const std::size_t size = byte < 0x20 ? 0 : formats::utf8_sequence_bytes(json_.substr(at_));
      if (size == 0) return false;
      at_ += size;
      if (byte == '\\' && at_ < json_.size()) ++at_;  // the escaped character may be a quote
    }
    return take('"');
  }

  std::string_view json_;
  std::size_t at_ = 0;
  bool inside_object_ = false;
  std::vector<std::string_view>* numbers_ = nullptr;
};

}  // namespace

std::size_t json_place(std::string_view json, json_path path) {
  walker w(json);
  for (std::size_t i = 0; i < path.size(); ++i) {
    if ((i != 0 && !w.to_value()) || !w.enter(path[i])) break;
  }
  return w.at();
}

std::vector<std::string_view> json_numbers(std::string_view json, json_path path) {
  walker w(json);
  for (const std::size_t step : path) {
    if (!w.enter(step) || !w.to_value()) return {};
  }
  std::vector<std::string_view> numbers;
  w.note_numbers(numbers);
  w.take_value();
  return numbers;
}

std::size_t json_end(std::string_view json) {
  walker w(json);
  return w.take_value() ? w.at() : w.stopped_at();
}

}  // namespace millrace::tokenizer::detail
