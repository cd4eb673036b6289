// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/megatron/blend_file.hpp>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset/megatron/blend_list.hpp>
#include <millrace/dataset/megatron/read_python_json.hpp>
#include <millrace/dataset/megatron/split.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

/// Looks at a JSON text that `read_python_json` has accepted: so nothing here is checked again.
class blend_file_reader {
 public:
  /// A word of an array, or of a text.
  struct word {
    std::string text;
    bool is_text = true;
  };
  struct value {
    bool found = false;
    bool is_null = false;
    bool is_words = false;
    std::vector<word> words;
  };

  explicit blend_file_reader(std::string_view json) noexcept : text_(json) {}

  /// The values of the keys, if the text is an object; of equal keys the last one counts.
  std::optional<std::array<value, 3>> read();

 private:
  char peek() noexcept {
    at_ = text_.find_first_not_of(" \t\n\r", at_);
    return text_[at_];
  }
  std::string string();
  std::string_view scalar() {
    const std::size_t end = std::min(text_.find_first_of(" \t\n\r,]}", at_), text_.size());
    const std::string_view text = text_.substr(at_, end - at_);
    at_ = end;
    return text;
  }
  void skip();
  value words();

  std::string_view text_;
  std::size_t at_ = 0;
};

MILLRACE_INLINE void append_utf8(std::string& out, std::uint32_t code_point) {
  if (code_point < 0x80) {
    out += static_cast<char>(code_point);
    return;
  }
  const int more = code_point < 0x800 ? 1 : code_point < 0x10000 ? 2 : 3;
  out += static_cast<char>((0xFF00U >> (more + 1) & 0xFF) | code_point >> (6 * more));
  for (int i = more - 1; i >= 0; --i) {
    out += static_cast<char>(0x80 | (code_point >> (6 * i) & 0x3F));
  }
}

MILLRACE_INLINE std::string blend_file_reader::string() {
  const auto unit_at = [this](std::size_t escape) {  // of \uHHHH
    std::uint32_t unit = 0;
    if (text_.substr(escape, 2) == "\\u") {
      std::from_chars(text_.data() + escape + 2, text_.data() + escape + 6, unit, 16);
    }
    return unit;
  };
  std::string out;
  for (++at_; text_[at_] != '"'; ++at_) {
    if (text_[at_] != '\\') {
      out += text_[at_];
    } else if (text_[at_ + 1] != 'u') {
      const char escape = text_[++at_];
      const std::size_t found = std::string_view("bfnrt").find(escape);
      out += found == std::string_view::npos ? escape : "\b\f\n\r\t"[found];
    } else {
      std::uint32_t code_point = unit_at(at_);
      at_ += 5;
      const std::uint32_t low = unit_at(at_ + 1);
      if (code_point >> 10 == 0xD800 >> 10 && low >> 10 == 0xDC00 >> 10) {
        code_point = 0x10000 + ((code_point & 0x3FF) << 10) + (low & 0x3FF);
        at_ += 6;
      }
      append_utf8(out, code_point);
    }
  }
  ++at_;
  return out;
}

MILLRACE_INLINE void blend_file_reader::skip() {
  int depth = 0;
  do {
    switch (peek()) {
      case '"':
        (void)string();
        break;
      case '{':
      case '[':
        ++depth;
        ++at_;
        break;
      case '}':
      case ']':
        --depth;
        ++at_;
        break;
      case ',':
      case ':':
        ++at_;
        break;
      default:
        (void)scalar();
    }
  } while (depth != 0);
}

MILLRACE_INLINE blend_file_reader::value blend_file_reader::words() {
  value out;
  out.found = true;
  if (peek() == '"') {
    out.is_words = true;
    for (std::string& each : python_split(string())) out.words.push_back({std::move(each)});
    return out;
  }
  if (peek() != '[') {
    const std::size_t begin = at_;
    skip();
    out.is_null = text_.substr(begin, at_ - begin) == "null";
    return out;
  }
  out.is_words = true;
  for (++at_; peek() != ']';) {
    if (peek() == ',') {
      ++at_;
    } else if (peek() == '"') {
      out.words.push_back({string()});
    } else if (peek() == '{' || peek() == '[') {
      out.is_words = false;
      skip();
    } else {
      const std::string_view number = scalar();
      out.is_words = out.is_words && read_python_float(number).has_value();
      out.words.push_back({std::string(number), false});
    }
  }
  ++at_;
  return out;
}

MILLRACE_INLINE std::optional<std::array<blend_file_reader::value, 3>> blend_file_reader::read() {
  if (peek() != '{') return std::nullopt;
  std::array<value, 3> values;
  for (++at_; peek() != '}';) {
    if (peek() == ',') ++at_;
    (void)peek();
    const std::string key = string();
    (void)peek();
    ++at_;  // the colon
    bool known = false;
    for (const split_part part : split_parts) {
      if (key != name(part)) continue;
      values[static_cast<std::size_t>(part)] = words();
      known = true;
    }
    if (!known) skip();
  }
  return values;
}

}  // namespace detail

MILLRACE_INLINE part_blends read_part_blends(std::string_view json, std::string_view option) {
  (void)read_python_json(json);
  const std::string file(option);
  const auto values = detail::blend_file_reader(json).read();
  if (!values) throw config_error(file + ": expected a JSON object with train, valid and test");
  part_blends blends;
  for (const split_part part : split_parts) {
    const auto& value = (*values)[static_cast<std::size_t>(part)];
    const std::string key = file + ": \"" + std::string(name(part)) + '"';
    if (!value.found) throw config_error(key + " is missing, expected a blend, or null for none");
    if (value.is_null) continue;
    if (!value.is_words) {
      throw config_error(key + " is not null, a string, or an array of strings and numbers");
    }
    std::vector<std::string> words;
    for (const auto& word : value.words) words.push_back(word.text);
    blend_list list = parse_blend_list(words, key);
    const std::size_t step = list.weighted() ? 2 : 1;
    for (std::size_t i = step - 1; i < words.size(); i += step) {
      if (value.words[i].is_text) continue;
      throw config_error(key + ": " + words[i] + " (word " + std::to_string(i + 1) +
                         ") is a number, expected a prefix in quotes");
    }
    blends[static_cast<std::size_t>(part)] = std::move(list);
  }
  return blends;
}

}  // namespace millrace::dataset
