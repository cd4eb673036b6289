// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/utf8.hpp>

namespace millrace::dataset {

namespace detail {

class python_json_reader {
 public:
  explicit python_json_reader(std::string_view text) : text_(text) {}

  python_json whole() {
    python_json value = read(0);
    skip_spaces();
    if (at_ != text_.size()) fail("expected the end of the JSON text");
    return value;
  }

 private:
  static constexpr int most_levels = 200;

  [[noreturn]] void fail(const char* what) const { throw format_error(at_, what); }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view expected) {
    if (text_.substr(at_, expected.size()) != expected) return false;
    at_ += expected.size();
    return true;
  }
  void skip_spaces() {
    while (at_ < text_.size() && std::string_view(" \t\n\r").find(text_[at_]) != text_.npos) ++at_;
  }

  python_json read(int level);
  python_json read_object(int level);
  python_json read_array(int level);
  python_json read_string();
  python_json read_number();
  std::uint32_t read_escape();
  std::size_t skip_digits();

  std::string_view text_;
  std::size_t at_ = 0;
};

MILLRACE_INLINE python_json python_json_reader::read(int level) {
  skip_spaces();
  if (level > most_levels) fail("the JSON text is nested too deeply");
  switch (peek()) {
    case '{':
      return read_object(level);
    case '[':
      return read_array(level);
    case '"':
      return read_string();
    default:
      break;
  }
  for (const char* name : {"null", "true", "false", "NaN", "Infinity", "-Infinity"}) {
    if (take(name)) return python_json::scalar(name);
  }
  return read_number();
}

MILLRACE_INLINE python_json python_json_reader::read_object(int level) {
  python_json object = python_json::object();
  ++at_;
  skip_spaces();
  if (take("}")) return object;
  for (;;) {
    skip_spaces();
    if (peek() != '"') fail("expected a key in quotes");
    const python_json key = read_string();
    skip_spaces();
    if (!take(":")) fail("expected a colon after the key");
    object.set(key, read(level + 1));
    skip_spaces();
    if (take("}")) return object;
    if (!take(",")) fail("expected a comma or the end of the object");
  }
}

MILLRACE_INLINE python_json python_json_reader::read_array(int level) {
  python_json array = python_json::array();
  ++at_;
  skip_spaces();
  if (take("]")) return array;
  for (;;) {
    array.push_back(read(level + 1));
    skip_spaces();
    if (take("]")) return array;
    if (!take(",")) fail("expected a comma or the end of the array");
  }
}

/// Converts the escapes of the input directly to the escapes of json.dumps, one UTF-16 code unit at
/// a time. The unescaped text is never needed.
MILLRACE_INLINE python_json python_json_reader::read_string() {
  std::string out = "\"";
  ++at_;
  while (!take("\"")) {
    if (at_ == text_.size()) fail("the JSON text ends inside a string");
    const auto lead = static_cast<unsigned char>(text_[at_]);
    if (lead < ' ') fail("a control character in a string");
    if (take("\\")) {
      append_json_unit(out, read_escape());
      continue;
    }
    const std::size_t size = formats::utf8_sequence_bytes(text_.substr(at_));
    if (size == 0) fail("a string is not UTF-8");
    const std::string printed = [&] {
      python_json one = python_json::string(text_.substr(at_, size));
      return one.dump();
    }();
    out.append(printed, 1, printed.size() - 2);
    at_ += size;
  }
  return python_json::scalar(out + '"');
}

MILLRACE_INLINE std::uint32_t python_json_reader::read_escape() {
  constexpr std::string_view names = "\"\\/bfnrt";
  constexpr std::string_view meant = "\"\\/\b\f\n\r\t";
  const std::size_t found = at_ < text_.size() ? names.find(text_[at_]) : names.npos;
  if (found != names.npos) {
    ++at_;
    return static_cast<unsigned char>(meant[found]);
  }
  std::uint32_t unit = 0;
  const std::string_view digits = text_.substr(at_, 5);
  const char* const last = digits.data() + digits.size();
  if (digits.size() != 5 || digits[0] != 'u' ||
      std::from_chars(digits.data() + 1, last, unit, 16).ptr != last) {
    fail("expected a JSON escape after the backslash");
  }
  at_ += 5;
  return unit;
}

MILLRACE_INLINE std::size_t python_json_reader::skip_digits() {
  const std::size_t start = at_;
  while (peek() >= '0' && peek() <= '9') ++at_;
  return at_ - start;
}

MILLRACE_INLINE python_json python_json_reader::read_number() {
  const std::size_t start = at_;
  take("-");
  if (!take("0") && skip_digits() == 0) fail("expected a JSON value");
  const std::size_t integer_end = at_;
  if (peek() == '.') {
    ++at_;
    if (skip_digits() == 0) fail("expected digits after the decimal point");
  }
  if (peek() == 'e' || peek() == 'E') {
    ++at_;
    if (!take("-")) take("+");
    if (skip_digits() == 0) fail("expected the digits of an exponent");
  }
  const std::string_view text = text_.substr(start, at_ - start);
  if (at_ == integer_end) return python_json::scalar(text == "-0" ? "0" : std::string(text));

  double value = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), value).ec != std::errc{}) {
    value = is_beyond_one(text) ? std::numeric_limits<double>::infinity() : 0.0;
    if (text[0] == '-') value = -value;
  }
  return python_json::real(value);
}

}  // namespace detail

MILLRACE_INLINE python_json read_python_json(std::string_view text) {
  return detail::python_json_reader(text).whole();
}

MILLRACE_INLINE bool is_beyond_one(std::string_view number) noexcept {
  if (number.starts_with('-') || number.starts_with('+')) number.remove_prefix(1);
  const std::size_t e = std::min(number.find_first_of("eE"), number.size());
  const std::string_view digits = number.substr(0, e);
  const auto point = static_cast<std::int64_t>(std::min(digits.find('.'), digits.size()));
  const auto first = static_cast<std::int64_t>(digits.find_first_of("123456789"));
  // The exponent of the first nonzero digit, plus 1: 0 for 0.5, 1 for 5.
  const std::int64_t places = first < point ? point - first : point - first + 1;
  std::string_view power = number.substr(e);
  if (power.empty()) return places > 0;
  power.remove_prefix(power.size() > 1 && power[1] == '+' ? 2 : 1);
  std::int64_t exponent = 0;
  const char* const end = power.data() + power.size();
  const bool is_small = std::from_chars(power.data(), end, exponent).ec == std::errc();
  // Clamp larger exponents. No text has as many digits as this limit.
  constexpr std::int64_t most = std::int64_t{1} << 62;
  if (!is_small) exponent = power.starts_with('-') ? -most : most;
  return std::clamp(exponent, -most, most) + places > 0;
}

}  // namespace millrace::dataset
