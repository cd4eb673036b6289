// SPDX-License-Identifier: Apache-2.0
#include "json/json_place.hpp"

#include <algorithm>
#include <cstddef>
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
  // `entry` is the index of the entry. If there is no such entry, moves as far as possible and
  // returns false.
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

namespace {

constexpr std::size_t fewest_digits = 19;  // 2^63 has 19 digits

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_of_float(char c) {
  return c == '.' || c == 'e' || c == 'E' || c == '+';
}

// Overwrites the digits with d.ddde<count - 1>. Drops the last digits to make room for the point
// and the exponent.
void spell_as_float(char* digits, std::size_t count) {
  const std::string exponent = std::string(1, 'e').append(std::to_string(count - 1));
  std::copy_backward(digits + 1, digits + count - 1 - exponent.size(),
                     digits + count - exponent.size());
  digits[1] = '.';
  std::ranges::copy(exponent, digits + count - exponent.size());
}

}  // namespace

std::string with_floats_for_wide_integers(std::string_view json) {
  std::string changed(json);
  bool in_string = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    if (in_string) {
      if (json[at] == '\\') {
        ++at;
      } else {
        in_string = json[at] != '"';
      }
      continue;
    }
    in_string = json[at] == '"';
    if (!is_digit(json[at])) continue;
    const std::size_t begin = at;
    while (at < json.size() && is_digit(json[at])) ++at;
    const bool is_integer = (begin == 0 || !is_of_float(json[begin - 1])) &&
                            (at == json.size() || !is_of_float(json[at]));
    if (is_integer && json[begin] != '0' && at - begin >= fewest_digits) {
      spell_as_float(changed.data() + begin, at - begin);
    }
    --at;
  }
  return changed;
}

}  // namespace millrace::tokenizer::detail
