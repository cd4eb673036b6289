// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/formats/detail/utf8.hpp>

/// JSON for this project's own small files, such as states and edits. The parser is strict. It is
/// slower than simdjson, but needs no other library.
namespace millrace::formats {

class json_value;
struct json_member;
namespace detail {
class json_parser;
}
using json_array = std::vector<json_value>;
/// Members in the order of the text. Each name occurs once.
using json_object = std::vector<json_member>;

/// Any JSON value. A number without a fraction and without an exponent is an int64, or a uint64 if
/// it is too large for an int64. Any other number is a double.
class json_value {
 public:
  json_value() noexcept;  ///< null
  json_value(bool value);
  json_value(std::int64_t value);
  json_value(std::uint64_t value);
  json_value(int value);
  /// @pre `value` is finite
  json_value(double value);
  json_value(std::string value);
  json_value(const char* value);
  json_value(json_array value);
  json_value(json_object value);

  bool is_null() const noexcept { return std::holds_alternative<std::monostate>(value_); }
  /// Returns a pointer to the value if it is a T (bool, std::int64_t, std::uint64_t, double,
  /// std::string, json_array, json_object), otherwise null. A value that fits in a std::int64_t is
  /// never a std::uint64_t.
  template <class T>
  const T* as() const noexcept {
    return std::get_if<T>(&value_);
  }
  /// Returns a pointer to the value as a double if it is a number of any type, otherwise null. If
  /// the number must be converted, the result is stored in `scratch`.
  const double* as_double(double& scratch) const noexcept {
    if (const auto* integer = as<std::int64_t>()) {
      scratch = static_cast<double>(*integer);
    } else if (const auto* large = as<std::uint64_t>()) {
      scratch = static_cast<double>(*large);
    } else {
      return as<double>();
    }
    return &scratch;
  }
  /// The member with this name; null if there is none, or if this value is not an object.
  const json_value* find(std::string_view name) const noexcept;
  /// The kind of value, for messages: "a number", "an object".
  const char* kind() const noexcept;
  /// The byte at which parse_json() found the value. For a member of an object, this is the first
  /// byte of its name; for any other value, it is the first byte of the value. 0 for a value that
  /// was not parsed.
  std::size_t offset() const noexcept { return offset_; }

  friend bool operator==(const json_value& a, const json_value& b);

 private:
  friend class detail::json_parser;

  std::variant<std::monostate, bool, std::int64_t, std::uint64_t, double, std::string, json_array,
               json_object>
      value_;
  std::size_t offset_ = 0;  // ignored by operator==
};

struct json_member {
  std::string name;
  json_value value;
  friend bool operator==(const json_member&, const json_member&) = default;
};

/// Parses a JSON text (RFC 8259): one value in UTF-8, with white space allowed around it.
///
/// A file name need not be UTF-8, so a string can hold bytes that are not UTF-8. The JSON text
/// represents each such byte as a lone surrogate from `\udc80` to `\udcff`, like Python's error
/// handler surrogateescape.
///
/// @throws format_error  the text is not JSON; an object has a name twice; a number does not fit
///                       64 bits or a double; a value is nested in more than 64 others.
json_value parse_json(std::string_view text);

/// Writes `value` on one line, with a space after each comma and colon, and without a line end.
/// A double is written in the shortest form that parses back to the same value. It always has a
/// point or an exponent, so that it parses back as a double.
std::string write_json(const json_value& value);

// ---------------------------------------------------------------------------------------------

// Defined here, because json_value and json_member each require the other type to be complete.
inline json_value::json_value() noexcept = default;
inline json_value::json_value(bool value) : value_(value) {}
inline json_value::json_value(std::int64_t value) : value_(value) {}
inline json_value::json_value(std::uint64_t value) {
  // Store a number as int64 if it fits, so that operator== finds equal numbers equal.
  if (std::in_range<std::int64_t>(value)) {
    value_ = static_cast<std::int64_t>(value);
  } else {
    value_ = value;
  }
}
inline json_value::json_value(int value) : value_(std::int64_t{value}) {}
inline json_value::json_value(double value) : value_(value) {
  assert(std::isfinite(value));
}
inline json_value::json_value(std::string value) : value_(std::move(value)) {}
inline json_value::json_value(const char* value) : value_(std::string(value)) {}
inline json_value::json_value(json_array value) : value_(std::move(value)) {}
inline json_value::json_value(json_object value) : value_(std::move(value)) {}

inline bool operator==(const json_value& a, const json_value& b) {
  return a.value_ == b.value_;
}

inline const json_value* json_value::find(std::string_view name) const noexcept {
  if (const auto* object = as<json_object>()) {
    for (const json_member& member : *object) {
      if (member.name == name) return &member.value;
    }
  }
  return nullptr;
}

inline const char* json_value::kind() const noexcept {
  constexpr const char* kinds[] = {"null",     "true or false", "a whole number", "a whole number",
                                   "a number", "a string",      "a list",         "an object"};
  return kinds[value_.index()];
}

namespace detail {

class json_parser {
 public:
  explicit json_parser(std::string_view text) noexcept : text_(text) {}

  json_value document() {
    json_value found = value(0);
    skip_space();
    if (at_ < text_.size()) refuse("the end of the text");
    return found;
  }

 private:
  [[noreturn]] void refuse(const std::string& expected) const {
    throw format_error(at_, "not JSON: expected " + expected +
                                (at_ < text_.size() ? "" : ", found the end of the text"));
  }

  char peek() const noexcept { return at_ < text_.size() ? text_[at_] : '\0'; }

  void skip_space() noexcept {
    while (peek() == ' ' || peek() == '\n' || peek() == '\r' || peek() == '\t') ++at_;
  }

  bool take(char c) noexcept {
    skip_space();
    if (peek() != c || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }

  bool take_word(std::string_view word) noexcept {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  json_value value(int depth) {
    if (depth > 64) refuse("a value nested in at most 64 others");
    skip_space();
    const std::size_t at = at_;
    json_value found = value_here(depth);
    found.offset_ = at;
    return found;
  }

  json_value value_here(int depth) {
    switch (peek()) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return string();
      case 't':
        if (take_word("true")) return true;
        break;
      case 'f':
        if (take_word("false")) return false;
        break;
      case 'n':
        if (take_word("null")) return {};
        break;
      default:
        if (peek() == '-' || is_digit(peek())) return number();
    }
    refuse("a value");
  }

  json_value object(int depth) {
    ++at_;
    json_object members;
    if (take('}')) return members;
    do {
      skip_space();
      const std::size_t name_at = at_;
      if (peek() != '"') refuse("a name in quotation marks");
      std::string name = string();
      for (const json_member& member : members) {
        if (member.name != name) continue;
        at_ = name_at;
        refuse("each name once in an object");
      }
      if (!take(':')) refuse("a colon");
      members.push_back({std::move(name), value(depth + 1)});
      members.back().value.offset_ = name_at;
    } while (take(','));
    if (!take('}')) refuse("a comma or a closing brace");
    return members;
  }

  json_value array(int depth) {
    ++at_;
    json_array values;
    if (take(']')) return values;
    do {
      values.push_back(value(depth + 1));
    } while (take(','));
    if (!take(']')) refuse("a comma or a closing bracket");
    return values;
  }

  static bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

  void digits() {
    if (!is_digit(peek())) refuse("a digit");
    while (is_digit(peek())) ++at_;
  }

  json_value number() {
    const std::size_t begin = at_;
    if (peek() == '-') ++at_;
    if (peek() == '0') {
      ++at_;
    } else {
      digits();
    }
    bool whole = true;
    if (peek() == '.') {
      whole = false;
      ++at_;
      digits();
    }
    if (peek() == 'e' || peek() == 'E') {
      whole = false;
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      digits();
    }
    const std::string_view text = text_.substr(begin, at_ - begin);
    json_value found;
    const auto parsed = [&]<class T>(T value) {
      const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
      if (result.ec != std::errc()) return false;
      found = value;
      return true;
    };
    if (whole ? parsed(std::int64_t{}) || (text[0] != '-' && parsed(std::uint64_t{}))
              : parsed(double{})) {
      return found;
    }
    at_ = begin;
    refuse(whole ? "a whole number that fits 64 bits" : "a number that fits a double");
  }

  std::uint32_t hex4() {
    std::uint32_t unit = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      const char c = peek();
      const int digit = is_digit(c)            ? c - '0'
                        : c >= 'a' && c <= 'f' ? c - 'a' + 10
                        : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                               : -1;
      if (digit < 0) refuse("four hexadecimal digits");
      unit = unit << 4 | static_cast<std::uint32_t>(digit);
    }
    return unit;
  }

  void escape(std::string& out) {
    constexpr std::string_view names = "\"\\/bfnrt";
    constexpr std::string_view stand_for = "\"\\/\b\f\n\r\t";
    const std::size_t which = at_ < text_.size() ? names.find(peek()) : std::string_view::npos;
    if (which != std::string_view::npos) {
      out += stand_for[which];
      ++at_;
      return;
    }
    if (peek() != 'u') refuse("one of JSON's escapes: \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\u");
    ++at_;
    std::uint32_t code = hex4();
    if (code >= 0xD800 && code < 0xDC00) {
      if (!take_word("\\u")) refuse("the second half of a surrogate pair");
      const std::uint32_t low = hex4();
      if (low < 0xDC00 || low > 0xDFFF) refuse("the second half of a surrogate pair");
      code = 0x10000 + ((code & 0x3FF) << 10 | (low & 0x3FF));
    } else if (code >= 0xDC80 && code < 0xDD00) {
      out += static_cast<char>(code & 0xFF);  // a byte that is not UTF-8
      return;
    } else if (code >= 0xDC00 && code < 0xE000) {
      refuse("a surrogate only in a pair");
    }
    append_utf8(code, out);
  }

  std::string string() {
    ++at_;
    std::string out;
    for (;;) {
      if (at_ >= text_.size()) refuse("a closing quotation mark");
      if (peek() == '"') break;
      if (peek() == '\\') {
        ++at_;
        escape(out);
        continue;
      }
      const std::size_t size = utf8_sequence_bytes(text_.substr(at_));
      if (size == 0 || static_cast<unsigned char>(peek()) < 0x20) {
        refuse("UTF-8, with control characters escaped");
      }
      out += text_.substr(at_, size);
      at_ += size;
    }
    ++at_;
    return out;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

// Returns the shortest form of a double that has a point or an exponent, so that it is parsed as a
// double.
inline std::string json_number(double value) {
  char text[32];
  std::string digits(text, std::to_chars(text, text + sizeof text, value).ptr);
  return digits.find_first_of(".e") == std::string::npos ? digits + ".0" : digits;
}

inline void write_json_to(const json_value& value, json_writer& json) {
  if (value.is_null()) json.null();
  if (const auto* boolean = value.as<bool>()) json.value(*boolean);
  if (const auto* integer = value.as<std::int64_t>()) json.value(*integer);
  if (const auto* large = value.as<std::uint64_t>()) json.value(*large);
  if (const auto* real = value.as<double>()) json.raw(json_number(*real));
  // States store U+007F unescaped.
  if (const auto* text = value.as<std::string>()) json.raw(json_string(*text, false));
  if (const auto* array = value.as<json_array>()) {
    json.open('[');
    for (const json_value& element : *array) write_json_to(element, json);
    json.close(']');
  }
  if (const auto* object = value.as<json_object>()) {
    json.open('{');
    for (const json_member& member : *object) write_json_to(member.value, json.key(member.name));
    json.close('}');
  }
}

}  // namespace detail

inline json_value parse_json(std::string_view text) {
  return detail::json_parser(text).document();
}

inline std::string write_json(const json_value& value) {
  json_writer json;
  detail::write_json_to(value, json);
  return json.text();
}

}  // namespace millrace::formats
