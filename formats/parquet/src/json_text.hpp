// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <millrace/formats/detail/hex.hpp>
#include <millrace/parquet/text_sink.hpp>

namespace millrace::parquet::detail {

/// Writes JSON to a sink, with few calls of it. Not thread-safe.
class json_text {
 public:
  explicit json_text(text_sink& to) : sink_(to) {}
  json_text(const json_text&) = delete;
  json_text& operator=(const json_text&) = delete;

  /// Gives the sink what was written so far.
  void flush() {
    if (at_ == begin_) return;
    const auto size = static_cast<std::size_t>(at_ - begin_);
    sink_.filled(size);
    given_ += size;
    begin_ = at_ = end_ = nullptr;
  }
  /// Bytes that were written so far.
  std::size_t size() const noexcept { return given_ + static_cast<std::size_t>(at_ - begin_); }

  void raw(std::string_view text) {
    need(text.size());
    std::memcpy(at_, text.data(), text.size());
    at_ += text.size();
  }
  void raw(char c) {
    need(1);
    *at_++ = c;
  }
  void integer(std::int64_t value) { number(value); }
  void unsigned_integer(std::uint64_t value) { number(value); }
  /// As Python writes a float.
  void floating(double value);
  /// Writes a string. The bytes behind it must be readable, up to `padding_bytes`.
  void string(std::string_view text) {
    raw('"');
    // In parts, so that a long text does not need room for six times its length.
    constexpr std::size_t most = std::size_t{1} << 16;
    while (text.size() > most) {
      escape(text.substr(0, most));
      text.remove_prefix(most);
    }
    escape(text);
    raw('"');
  }

 private:
  static constexpr std::size_t room_bytes = std::size_t{1} << 16;
  static constexpr std::size_t block_bytes = 16;

  void need(std::size_t bytes) {
    if (bytes <= static_cast<std::size_t>(end_ - at_)) return;
    flush();
    const std::size_t room = std::max(bytes, room_bytes);
    begin_ = at_ = sink_.room(room);
    end_ = begin_ + room;
  }

  template <class T>
  void number(T value) {
    need(24);
    at_ = std::to_chars(at_, end_, value).ptr;
  }

  void escape(std::string_view text);
  static char* escape_byte(unsigned char byte, char* to) noexcept;
  /// Copies a block, and returns a bit for each byte that needs an escape.
  static unsigned copy_block(const char* from, char* to) noexcept;

  text_sink& sink_;
  char* begin_ = nullptr;
  char* at_ = nullptr;
  char* end_ = nullptr;
  std::size_t given_ = 0;
};

#ifdef __SSE2__
inline unsigned json_text::copy_block(const char* from, char* to) noexcept {
  const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), bytes);
  const __m128i is_control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
  const __m128i is_quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
  const __m128i is_backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
  return static_cast<unsigned>(
      _mm_movemask_epi8(_mm_or_si128(is_control, _mm_or_si128(is_quote, is_backslash))));
}
#else
inline unsigned json_text::copy_block(const char* from, char* to) noexcept {
  std::array<char, block_bytes> bytes;
  std::memcpy(bytes.data(), from, block_bytes);
  std::memcpy(to, bytes.data(), block_bytes);
  unsigned found = 0;
  for (std::size_t i = 0; i < block_bytes; ++i) {
    const auto byte = static_cast<unsigned char>(bytes[i]);
    found |= (byte < 0x20 || byte == '"' || byte == '\\' ? 1U : 0U) << i;
  }
  return found;
}
#endif

inline char* json_text::escape_byte(unsigned char byte, char* to) noexcept {
  const auto two = [&](char second) {
    *to++ = '\\';
    *to++ = second;
    return to;
  };
  switch (byte) {
    case '"':
    case '\\':
      return two(static_cast<char>(byte));
    case '\n':
      return two('n');
    case '\r':
      return two('r');
    case '\t':
      return two('t');
    case '\b':
      return two('b');
    case '\f':
      return two('f');
    default:
      std::memcpy(to, "\\u00", 4);
      to[4] = formats::hex_digits[byte >> 4];
      to[5] = formats::hex_digits[byte & 15];
      return to + 6;
  }
}

inline void json_text::escape(std::string_view text) {
  // A block is written whole, even where less of it counts.
  need(6 * text.size() + block_bytes);
  const char* from = text.data();
  std::size_t left = text.size();
  char* to = at_;
  while (left != 0) {
    const std::size_t n = std::min(left, block_bytes);
    const unsigned found = copy_block(from, to) & ((1U << n) - 1);
    if (found == 0) {
      from += n;
      to += n;
      left -= n;
      continue;
    }
    const auto clean = static_cast<std::size_t>(std::countr_zero(found));
    to = escape_byte(static_cast<unsigned char>(from[clean]), to + clean);
    from += clean + 1;
    left -= clean + 1;
  }
  at_ = to;
}

inline void json_text::floating(double value) {
  if (std::isnan(value)) return raw("NaN");
  if (std::isinf(value)) return raw(value < 0 ? "-Infinity" : "Infinity");
  need(40);
  char* const begin = at_;
  at_ = std::to_chars(at_, end_, value).ptr;
  const std::string_view digits(begin, static_cast<std::size_t>(at_ - begin));
  // Without a point or an exponent, Python would read an integer.
  if (digits.find_first_of(".e") == std::string_view::npos) raw(".0");
}

}  // namespace millrace::parquet::detail
