// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstddef>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include <millrace/formats/utf8.hpp>

namespace millrace::command {

/// `text` as a JSON string, with its quotes. Each byte that is not UTF-8 becomes a lone surrogate,
/// `\udc80` to `\udcff`, as with Python's error handler surrogateescape. So no byte of a file name
/// is lost: in Python, json.loads and then os.fsencode restore it.
inline std::string json_string(std::string_view text);

/// Writes one JSON value from left to right. Adds the commas itself.
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
  template <class T>
  json_writer& value(const T& v) {
    separate();
    if constexpr (std::is_same_v<T, bool>) {
      text_ += v ? "true" : "false";
    } else if constexpr (std::is_floating_point_v<T>) {
      if (std::isfinite(v)) {
        fmt::format_to(std::back_inserter(text_), "{}", v);
      } else {
        text_ += "null";  // JSON has no NaN and no infinity
      }
    } else if constexpr (std::is_integral_v<T>) {
      fmt::format_to(std::back_inserter(text_), "{}", v);
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

  std::string text_;
  bool first_ = true;
};

inline std::string json_string(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t length = formats::utf8_sequence_bytes(text);
    const char c = text.front();
    if (length == 0) {
      fmt::format_to(std::back_inserter(out), "\\udc{:02x}", static_cast<unsigned char>(c));
    } else if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
      fmt::format_to(std::back_inserter(out), "\\u{:04x}", static_cast<unsigned>(c));
    } else {
      out += text.substr(0, length);
    }
    text.remove_prefix(length == 0 ? 1 : length);
  }
  out += '"';
  return out;
}

}  // namespace millrace::command
