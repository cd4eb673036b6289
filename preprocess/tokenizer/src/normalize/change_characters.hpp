// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "unicode/append_code_point.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

/// What change_characters makes of a character that it drops; no code point.
inline constexpr std::uint32_t dropped = 0xFFFFFFFF;

/// `text` with each character replaced by change(point), or without it: `text` itself where that
/// changes nothing, else `buffer`, which is overwritten.
template <class Change>
std::string_view change_characters(std::string_view text, std::string& buffer, Change change) {
  std::size_t copied = 0;
  bool changed = false;
  for (std::size_t at = 0; at < text.size();) {
    const code_point point = code_point_at(text, at);
    const std::uint32_t value = change(point.value);
    if (value != point.value) {
      if (!changed) buffer.clear();
      changed = true;
      buffer.append(text, copied, at - copied);
      if (value != dropped) append_code_point(buffer, value);
      copied = at + point.size_bytes;
    }
    at += point.size_bytes;
  }
  if (!changed) return text;
  buffer.append(text, copied);
  return buffer;
}

}  // namespace millrace::tokenizer::detail
