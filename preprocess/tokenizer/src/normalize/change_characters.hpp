// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/growth_limit.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

/// The result of a change that drops the character. It is not a code point.
inline constexpr std::uint32_t dropped = 0xFFFFFFFF;

/// Precomputed results of a change for the ASCII characters.
class ascii_change {
 public:
  static constexpr unsigned char gone = 0xFF;

  template <class Change>
  explicit ascii_change(const Change& change) {
    for (std::uint32_t point = 0; point < to_.size(); ++point) {
      const std::uint32_t value = change(point);
      to_[point] = value == dropped ? gone : static_cast<unsigned char>(value);
    }
  }
  /// Returns the ASCII character that replaces `c`, or `gone`.
  unsigned char of(unsigned char c) const noexcept { return to_[c]; }

 private:
  std::array<unsigned char, 128> to_;
};

/// Replaces each character of `text` by change(point), or drops it. If nothing changes, returns
/// `text` itself. Otherwise overwrites `buffer` and returns a view of it.
///
/// @param limit  limit on the size of the output
/// @param ascii  the results of `change` for ASCII characters; each must be an ASCII character or
///               `dropped`
template <class Change>
std::string_view change_characters(std::string_view text, std::string& buffer, growth_limit& limit,
                                   const ascii_change& ascii, const Change& change) {
  const auto byte_at = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t at = 0;
  while (at < text.size()) {  // find the first character that changes
    const code_point point = code_point_at(text, at);
    const bool same = point.value < 0x80 ? ascii.of(byte_at(at)) == point.value
                                         : change(point.value) == point.value;
    if (!same) break;
    at += point.size_bytes;
  }
  if (at == text.size()) return text;
  buffer.assign(text, 0, at);
  while (at < text.size()) {
    // Handle a run of ASCII characters. First make room for all of them, then shrink the buffer by
    // the number of dropped characters.
    const std::size_t written = buffer.size();
    limit.expect(written);
    const std::size_t check_at = text.size() - at > growth_limit::unchecked_bytes
                                     ? at + growth_limit::unchecked_bytes
                                     : text.size();
    const std::size_t run_begin = at;
    while (at < text.size() && byte_at(at) < 0x80) ++at;
    buffer.resize(written + (at - run_begin));
    char* to = buffer.data() + written;
    for (std::size_t i = run_begin; i < at; ++i) {
      const unsigned char c = ascii.of(byte_at(i));
      *to = static_cast<char>(c);
      to += c != ascii_change::gone;
    }
    buffer.resize(static_cast<std::size_t>(to - buffer.data()));
    while (at < check_at && byte_at(at) >= 0x80) {
      const code_point point = code_point_at(text, at);
      const std::uint32_t value = change(point.value);
      if (value == point.value) {
        buffer.append(text, at, point.size_bytes);
      } else if (value != dropped) {
        append_code_point(buffer, value);
      }
      at += point.size_bytes;
    }
  }
  return buffer;
}

}  // namespace millrace::tokenizer::detail
