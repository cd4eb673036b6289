// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/formats/utf8.hpp>

namespace millrace::dataset {

/// A JSON value that prints as Python's json.dumps prints it, character by character: Megatron
/// names its caches by the MD5 of such a text. Keys keep their order; a key that is set again keeps
/// its place, as in a dict.
class python_json {
 public:
  python_json() = default;  // null

  static python_json boolean(bool value) { return scalar(value ? "true" : "false"); }
  static python_json integer(std::int64_t value) { return scalar(std::to_string(value)); }
  /// As repr() of a float.
  static python_json real(double value);
  /// A text in UTF-8, printed in ASCII. Bytes that are no UTF-8 become the lone surrogates that
  /// Python makes of them in file names (PEP 383).
  static python_json string(std::string_view utf8);
  static python_json array(std::vector<python_json> items = {});
  static python_json object() { return python_json(kind::object); }

  /// A value as it is to be printed: a number of any size, NaN.
  static python_json scalar(std::string text);

  /// @pre made by array()
  void push_back(python_json item) { items_.push_back(std::move(item)); }
  /// @pre made by object()
  void set(const python_json& key, python_json value);
  void set(std::string_view key, python_json value) { set(string(key), std::move(value)); }

  bool is_object() const noexcept { return kind_ == kind::object; }

  /// json.dumps(value, indent=4): no line end behind it.
  std::string dump() const {
    std::string out;
    append_to(out, 0);
    return out;
  }

 private:
  enum class kind : std::uint8_t { scalar, array, object };
  explicit python_json(kind which) : kind_(which) {}
  void append_to(std::string& out, std::size_t depth) const;

  kind kind_ = kind::scalar;
  std::string text_ = "null";      // of a scalar, as printed
  std::vector<std::string> keys_;  // of an object, as printed
  std::vector<python_json> items_;
};

/// repr() of a Python float: the fewest digits that read back as the same number, with an exponent
/// below 1e-4 and from 1e16 on; `inf` and `nan` as json.dumps prints them, Infinity and NaN.
std::string python_float(double value);

// ---------------------------------------------------------------------------------------------

namespace detail {

/// Appends a unit of UTF-16 as json.dumps prints it inside a string.
inline void append_json_unit(std::string& out, std::uint32_t unit) {
  constexpr std::string_view named = "\"\\\n\r\t\f\b";
  constexpr std::string_view names = "\"\\nrtfb";
  if (unit >= ' ' && unit <= '~' && unit != '"' && unit != '\\') {
    out += static_cast<char>(unit);
    return;
  }
  out += '\\';
  const std::size_t at = unit < 0x80 ? named.find(static_cast<char>(unit)) : named.npos;
  if (at != named.npos) {
    out += names[at];
    return;
  }
  out += 'u';
  for (int shift = 12; shift >= 0; shift -= 4) out += "0123456789abcdef"[unit >> shift & 15];
}

inline void append_json_code_point(std::string& out, std::uint32_t code_point) {
  if (code_point < 0x10000) return append_json_unit(out, code_point);
  append_json_unit(out, 0xD800 + ((code_point - 0x10000) >> 10));
  append_json_unit(out, 0xDC00 + (code_point & 0x3FF));
}

}  // namespace detail

inline std::string python_float(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value < 0 ? "-Infinity" : "Infinity";
  char buffer[32];
  const auto end =
      std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::scientific).ptr;
  const std::string_view all(buffer, static_cast<std::size_t>(end - buffer));  // -1.25e+02
  const std::size_t e = all.find('e');
  int exponent = 0;
  std::from_chars(all.data() + e + 1 + (all[e + 1] == '+' ? 1 : 0), end, exponent);
  std::string text = value < 0 || std::signbit(value) ? "-" : "";
  std::string digits;
  for (const char c : all.substr(0, e)) {
    if (c >= '0' && c <= '9') digits += c;
  }
  if (exponent < -4 || exponent >= 16) {
    text += digits.substr(0, 1);
    if (digits.size() > 1) text += '.' + digits.substr(1);
    return text + std::string(all.substr(e));
  }
  if (exponent < 0) {
    return text + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + digits;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (digits.size() <= whole) return text + digits.append(whole - digits.size(), '0') + ".0";
  text.append(digits, 0, whole).append(1, '.').append(digits, whole);
  return text;
}

inline python_json python_json::string(std::string_view utf8) {
  std::string out = "\"";
  while (!utf8.empty()) {
    const std::size_t size = formats::utf8_sequence_bytes(utf8);
    const auto lead = static_cast<unsigned char>(utf8[0]);
    if (size == 0) {
      detail::append_json_unit(out, 0xDC00U + lead);
      utf8.remove_prefix(1);
      continue;
    }
    std::uint32_t code_point = size == 1 ? lead : lead & (0x7FU >> size);
    for (std::size_t i = 1; i < size; ++i) {
      code_point = code_point << 6 | (static_cast<unsigned char>(utf8[i]) & 0x3FU);
    }
    detail::append_json_code_point(out, code_point);
    utf8.remove_prefix(size);
  }
  return scalar(out + '"');
}

inline python_json python_json::scalar(std::string text) {
  python_json value;
  value.text_ = std::move(text);
  return value;
}

inline python_json python_json::real(double value) {
  return scalar(python_float(value));
}

inline python_json python_json::array(std::vector<python_json> items) {
  python_json value(kind::array);
  value.items_ = std::move(items);
  return value;
}

inline void python_json::set(const python_json& key, python_json value) {
  const auto found = std::ranges::find(keys_, key.text_);
  if (found != keys_.end()) {
    items_[static_cast<std::size_t>(found - keys_.begin())] = std::move(value);
    return;
  }
  keys_.push_back(key.text_);
  items_.push_back(std::move(value));
}

inline void python_json::append_to(std::string& out, std::size_t depth) const {
  if (kind_ == kind::scalar) {
    out += text_;
    return;
  }
  const bool named = kind_ == kind::object;
  out += named ? '{' : '[';
  for (std::size_t i = 0; i < items_.size(); ++i) {
    out += i == 0 ? "\n" : ",\n";
    out.append(4 * (depth + 1), ' ');
    if (named) out += keys_[i] + ": ";
    items_[i].append_to(out, depth + 1);
  }
  if (!items_.empty()) out += '\n' + std::string(4 * depth, ' ');
  out += named ? '}' : ']';
}

}  // namespace millrace::dataset
