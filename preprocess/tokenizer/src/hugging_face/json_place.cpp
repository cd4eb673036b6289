// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/json_place.hpp"

#include <algorithm>

#include <millrace/formats/utf8.hpp>

namespace millrace::tokenizer::detail {
namespace {

constexpr std::string_view white_space = " \t\r\n";
constexpr std::string_view scalar_characters = "+-.0123456789Eaeflnrstu";  // numbers, true, null
constexpr int max_depth = 512;

class walker {
 public:
  explicit walker(std::string_view json) : json_(json) {}

  std::size_t at() {
    skip_space();
    return at_;
  }

  // To the beginning of entry number `entry` of the container here, or as far as there is one.
  bool enter(std::size_t entry) {
    skip_space();
    const bool object = next_is('{');
    if (!object && !next_is('[')) return false;
    ++at_;
    for (std::size_t i = 0; i < entry; ++i) {
      if (object && !take_key()) return false;
      if (!take_value(0) || !take(',')) return false;
    }
    skip_space();
    inside_object_ = object;
    return true;
  }
  // From an entry to its value.
  bool to_value() { return !inside_object_ || take_key(); }

  bool take_value(int depth) {
    skip_space();
    if (depth > max_depth) return false;
    if (next_is('"')) return take_string();
    if (take('{')) return take_entries('}', depth);
    if (take('[')) return take_entries(']', depth);
    const std::size_t from = at_;
    at_ = std::min(json_.find_first_not_of(scalar_characters, at_), json_.size());
    if (numbers_ != nullptr && is_number(from)) {
      numbers_->push_back(json_.substr(from, at_ - from));
    }
    return at_ > from;
  }

  // From here on, numbers go there.
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

  bool take_entries(char end, int depth) {
    if (take(end)) return true;
    do {
      if (end == '}' && !take_key()) return false;
      if (!take_value(depth + 1)) return false;
    } while (take(','));
    return take(end);
  }

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
  w.take_value(0);
  return numbers;
}

std::size_t json_end(std::string_view json) {
  walker w(json);
  w.take_value(0);
  return w.at();
}

}  // namespace millrace::tokenizer::detail
