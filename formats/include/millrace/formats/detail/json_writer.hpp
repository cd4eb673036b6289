// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <cmath>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>

#include <millrace/formats/detail/hex.hpp>
#include <millrace/formats/detail/utf8.hpp>

namespace millrace::formats {

/// Returns `text` as a JSON string, including the quotes. Each byte that is not UTF-8 becomes a
/// lone surrogate, `\udc80` to `\udcff`, as with Python's error handler surrogateescape. So no byte
/// of a file name is lost: in Python, json.loads and then os.fsencode restore it.
///
/// @param escape_delete  if true, U+007F is written as \u007f; JSON allows both forms
inline std::string json_string(std::string_view text, bool escape_delete = true);

/// Writes one JSON value from left to right, on one line. Adds the commas, each with a space after
/// it.
///
///   json_writer json;
///   json.open('{').key("documents").value(3).key("lengths").open('[').value(1).close(']');
///   json.close('}');
class json_writer {
 public:
  json_writer& open(char bracket) {
    separate();
    text_ += bracket;
    first_ = true;
    return *this;
  }
  json_writer& close(char bracket) {
    text_ += bracket;
    first_ = false;
    return *this;
  }
  json_writer& key(std::string_view name) {
    separate();
    text_ += json_string(name);
    text_ += ": ";
    first_ = true;  // the value follows without a comma
    return *this;
  }
  /// Writes a value. A double gets the fewest digits that parse back to the same value. It gets an
  /// exponent if it is below 1e-4, or if it is 1e16 or more. NaN and infinity, which JSON lacks,
  /// become null.
  template <class T>
  json_writer& value(const T& v) {
    separate();
    if constexpr (std::is_same_v<T, bool>) {
      text_ += v ? "true" : "false";
    } else if constexpr (std::is_same_v<T, double>) {
      append(v);
    } else if constexpr (std::is_integral_v<T>) {
      text_ += std::to_string(v);
    } else {
      text_ += json_string(v);
    }
    return *this;
  }
  json_writer& null() {
    separate();
    text_ += "null";
    return *this;
  }

  /// Writes a value that is already JSON.
  json_writer& raw(std::string_view json) {
    separate();
    text_ += json;
    return *this;
  }

  const std::string& text() const noexcept { return text_; }

 private:
  void separate() {
    if (!first_) text_ += ", ";
    first_ = false;
  }

  void append(double v) {
    if (!std::isfinite(v)) {
      text_ += "null";
      return;
    }
    char text[64];
    char* end = std::to_chars(text, text + sizeof text, v, std::chars_format::scientific).ptr;
    const std::string_view all(text, static_cast<std::size_t>(end - text));  // -1.25e+02
    const std::size_t e = all.find('e');
    int exponent = 0;
    std::from_chars(all.data() + e + 2, end, exponent);
    const bool is_small = all[e + 1] == '-';
    if (is_small ? exponent <= 4 : exponent < 16) {
      end = std::to_chars(text, text + sizeof text, v, std::chars_format::fixed).ptr;
    }
    text_.append(text, end);
  }

  std::string text_;
  bool first_ = true;
};

// ---------------------------------------------------------------------------------------------

inline std::string json_string(std::string_view text, bool escape_delete) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = utf8_sequence_bytes(text);
    const char c = text.front();
    const auto byte = static_cast<unsigned char>(c);
    if (length == 0) {
      ((out += "\\udc") += hex_digits[byte >> 4]) += hex_digits[byte & 15];
    } else if (c == '"' || c == '\\') {
      (out += '\\') += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20 || (byte == 0x7F && escape_delete)) {
      ((out += "\\u00") += hex_digits[byte >> 4]) += hex_digits[byte & 15];
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  return out += '"';
}

}  // namespace millrace::formats
