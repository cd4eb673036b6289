// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include <millrace/formats/detail/utf8.hpp>

/// Functions for the bytes of JSON strings: they skip strings, decode escapes, and encode and check
/// UTF-8. They are used by `json_scanner`, among others.
namespace millrace::preprocess::detail {

/// Size of the blocks in which the plain bytes of a string (all except quotes, backslashes and
/// control characters) are copied. The last block may write up to this many bytes after the last
/// plain byte.
inline constexpr std::size_t block_bytes = 16;

constexpr std::uint8_t byte(char c) {
  return static_cast<std::uint8_t>(c);
}
constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_plain(char c) {
  return byte(c) >= 0x20 && c != '"' && c != '\\';
}

inline constexpr std::array<std::int16_t, 256> hex_values = [] {
  std::array<std::int16_t, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < 16; ++i) {
    values[byte("0123456789abcdef"[i])] = static_cast<std::int16_t>(i);
    values[byte("0123456789ABCDEF"[i])] = static_cast<std::int16_t>(i);
  }
  return values;
}();

/// Maps the character after a backslash to the character that the escape stands for. The value is 0
/// for `u` and for any character that does not form an escape.
inline constexpr std::array<char, 256> short_escapes = [] {
  std::array<char, 256> values{};
  for (const char c : {'"', '\\', '/'}) values[byte(c)] = c;
  values['b'] = '\b';
  values['f'] = '\f';
  values['n'] = '\n';
  values['r'] = '\r';
  values['t'] = '\t';
  return values;
}();

/// Returns the value of the four hexadecimal digits at `at`, or a negative number if any of the
/// four characters is not such a digit.
inline int hex4(const char* at) {
  const int a = hex_values[byte(at[0])];
  const int b = hex_values[byte(at[1])];
  const int c = hex_values[byte(at[2])];
  const int d = hex_values[byte(at[3])];
  return (a | b | c | d) < 0 ? -1 : a * 0x1000 + b * 0x100 + c * 0x10 + d;
}

constexpr bool is_high_surrogate(int unit) {
  return unit >= 0xD800 && unit < 0xDC00;
}
constexpr bool is_low_surrogate(int unit) {
  return unit >= 0xDC00 && unit < 0xE000;
}

constexpr int code_point_of_pair(int high, int low) {
  return 0x10000 + (high - 0xD800) * 0x400 + (low - 0xDC00);
}

inline char* put_utf8(char* out, int code_point) {
  const auto c = static_cast<unsigned>(code_point);
  const auto tail = [&](unsigned shift) { return static_cast<char>(0x80 | ((c >> shift) & 0x3F)); };
  if (c < 0x80) {
    *out++ = static_cast<char>(c);
    return out;
  }
  if (c < 0x800) {
    *out++ = static_cast<char>(0xC0 | (c >> 6));
  } else if (c < 0x10000) {
    *out++ = static_cast<char>(0xE0 | (c >> 12));
    *out++ = tail(6);
  } else {
    *out++ = static_cast<char>(0xF0 | (c >> 18));
    *out++ = tail(12);
    *out++ = tail(6);
  }
  *out++ = tail(0);
  return out;
}

/// Returns the end of the plain bytes that start at `at`: the position of the next quote, backslash
/// or control character, or `end` if there is none. If `Keep` is true, also copies the plain bytes
/// to `out_end` and advances `out_end` past them. The output must have room for the plain bytes and
/// `block_bytes` more bytes.
template <bool Keep>
const char* pass_plain(const char* at, const char* end, char*& out_end) {
  // For the compiler, a store through a `char*` could change `out_end`, so the loop uses a local
  // copy.
  char* out = out_end;
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i last_control = _mm_set1_epi8(0x1F);
  while (end - at >= 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at));
    if constexpr (Keep) _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
    const __m128i stops =
        _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                     _mm_cmpeq_epi8(_mm_max_epu8(bytes, last_control), last_control));
    const auto mask = static_cast<unsigned>(_mm_movemask_epi8(stops));
    const int plain = mask == 0 ? 16 : std::countr_zero(mask);
    at += plain;
    if constexpr (Keep) out += plain;
    if (mask != 0) {
      out_end = out;
      return at;
    }
  }
#else
  constexpr std::uint64_t ones = 0x0101010101010101;
  constexpr std::uint64_t highs = ones * 0x80;
  const auto below = [](std::uint64_t word, std::uint64_t limit) {  // is any byte < limit (<= 128)?
    return (word - ones * limit) & ~word & highs;
  };
  while (end - at >= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    if ((below(word, 0x20) | below(word ^ ones * '"', 1) | below(word ^ ones * '\\', 1)) != 0)
      break;
    if constexpr (Keep) {
      std::memcpy(out, &word, 8);
      out += 8;
    }
    at += 8;
  }
#endif
  for (; at != end && is_plain(*at); ++at) {
    if constexpr (Keep) *out++ = *at;
  }
  out_end = out;
  return at;
}

/// Returns the offset of the first UTF-8 sequence that is not well-formed, like Python's
/// UnicodeDecodeError.start. Returns the size of `line` if all of it is well-formed.
inline std::size_t first_invalid_utf8(std::string_view line) {
  std::size_t at = 0;
  while (at < line.size()) {
    const std::size_t size = formats::utf8_sequence_bytes(line.substr(at));
    if (size == 0) break;
    at += size;
  }
  return at;
}

}  // namespace millrace::preprocess::detail
