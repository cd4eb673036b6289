// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/python_json.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/formats/detail/utf8.hpp>

namespace millrace::dataset {

namespace detail {

/// Appends a UTF-16 code unit as json.dumps prints it inside a string.
MILLRACE_INLINE void append_json_unit(std::string& out, std::uint32_t unit) {
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

MILLRACE_INLINE void append_json_code_point(std::string& out, std::uint32_t code_point) {
  if (code_point < 0x10000) return append_json_unit(out, code_point);
  append_json_unit(out, 0xD800 + ((code_point - 0x10000) >> 10));
  append_json_unit(out, 0xDC00 + (code_point & 0x3FF));
}

}  // namespace detail

MILLRACE_INLINE std::string python_float(double value) {
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

MILLRACE_INLINE python_json python_json::string(std::string_view utf8) {
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

MILLRACE_INLINE python_json python_json::scalar(std::string text) {
  python_json value;
  value.text_ = std::move(text);
  return value;
}

MILLRACE_INLINE python_json python_json::real(double value) {
  return scalar(python_float(value));
}

MILLRACE_INLINE python_json python_json::array(std::vector<python_json> items) {
  python_json value(kind::array);
  value.items_ = std::move(items);
  return value;
}

MILLRACE_INLINE void python_json::set(const python_json& key, python_json value) {
  const auto found = std::ranges::find(keys_, key.text_);
  if (found != keys_.end()) {
    items_[static_cast<std::size_t>(found - keys_.begin())] = std::move(value);
    return;
  }
  keys_.push_back(key.text_);
  items_.push_back(std::move(value));
}

MILLRACE_INLINE const python_json* python_json::find(std::string_view key) const {
  const auto found = std::ranges::find(keys_, string(key).text_);
  return found == keys_.end() ? nullptr : &items_[static_cast<std::size_t>(found - keys_.begin())];
}

MILLRACE_INLINE std::optional<std::string> python_json::text() const {
  if (kind_ != kind::scalar || !text_.starts_with('"')) return std::nullopt;
  const auto unit_at = [this](std::size_t escape) {  // the code unit of \uHHHH, or 0
    std::uint32_t unit = 0;
    if (text_.compare(escape, 2, "\\u") == 0) {
      std::from_chars(text_.data() + escape + 2, text_.data() + escape + 6, unit, 16);
    }
    return unit;
  };
  std::string out;
  for (std::size_t at = 1; at + 1 < text_.size(); ++at) {
    if (text_[at] != '\\') {
      out += text_[at];
    } else if (text_[at + 1] != 'u') {
      const char escape = text_[++at];
      const std::size_t found = std::string_view("nrtfb").find(escape);
      out += found == std::string_view::npos ? escape : "\n\r\t\f\b"[found];
    } else {
      std::uint32_t code_point = unit_at(at);
      at += 5;
      const std::uint32_t low = unit_at(at + 1);
      if (code_point >> 10 == 0xD800 >> 10 && low >> 10 == 0xDC00 >> 10) {
        code_point = 0x10000 + ((code_point & 0x3FF) << 10) + (low & 0x3FF);
        at += 6;
      }
      formats::append_utf8(code_point, out);
    }
  }
  return out;
}

MILLRACE_INLINE void python_json::append_to(std::string& out, std::size_t depth) const {
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
