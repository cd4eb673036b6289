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
#include <millrace/parquet/row_reader.hpp>

#include "buffer.hpp"

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
  /// Writes a string. `padding_bytes` more bytes must be readable after `text`.
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
  static constexpr std::size_t block_bytes = 64;

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
  /// Returns a bit for each byte of a block that needs an escape.
  static std::uint64_t to_escape(const char* block) noexcept;

  struct escape_sequence {
    std::array<char, 7> text{};
    std::uint8_t size = 0;
  };
  static const std::array<escape_sequence, 256> sequences;

  text_sink& sink_;
  char* begin_ = nullptr;
  char* at_ = nullptr;
  char* end_ = nullptr;
  std::size_t given_ = 0;
};

#ifdef __SSE2__
inline std::uint64_t json_text::to_escape(const char* block) noexcept {
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < block_bytes; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + i));
    const __m128i is_control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
    const __m128i is_quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
    const __m128i is_backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
    const int mask =
        _mm_movemask_epi8(_mm_or_si128(is_control, _mm_or_si128(is_quote, is_backslash)));
    found |= std::uint64_t{static_cast<unsigned>(mask)} << i;
  }
  return found;
}
#else
inline std::uint64_t json_text::to_escape(const char* block) noexcept {
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < block_bytes; ++i) {
    const auto byte = static_cast<unsigned char>(block[i]);
    found |= std::uint64_t{byte < 0x20 || byte == '"' || byte == '\\'} << i;
  }
  return found;
}
#endif

inline constexpr std::array<json_text::escape_sequence, 256> json_text::sequences = [] {
  std::array<escape_sequence, 256> all{};
  for (std::size_t byte = 0; byte < 0x20; ++byte) {
    all[byte] = {
        {'\\', 'u', '0', '0', formats::hex_digits[byte >> 4], formats::hex_digits[byte & 15]}, 6};
  }
  constexpr std::string_view bytes = "\"\\\n\r\t\b\f";
  constexpr std::string_view letters = "\"\\nrtbf";
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    all[static_cast<unsigned char>(bytes[i])] = {{'\\', letters[i]}, 2};
  }
  return all;
}();

inline void json_text::escape(std::string_view text) {
  // Whole blocks are read and written, even where less of them counts: copies of a fixed size, and
  // a table instead of branches, make the speed almost independent of the number of escapes.
  static_assert(padding_bytes >= 2 * block_bytes);
  need(6 * text.size() + 2 * block_bytes);
  const char* from = text.data();
  char* to = at_;
  for (std::size_t left = text.size(); left != 0;) {
    const std::size_t size = std::min(left, block_bytes);
    std::uint64_t found = to_escape(from);
    if (size != block_bytes) found &= (std::uint64_t{1} << size) - 1;
    std::size_t done = 0;
    for (; found != 0; found &= found - 1) {
      const auto next = static_cast<std::size_t>(std::countr_zero(found));
      std::memcpy(to, from + done, block_bytes);
      to += next - done;
      const escape_sequence& sequence = sequences[static_cast<unsigned char>(from[next])];
      std::memcpy(to, sequence.text.data(), sequence.text.size());
      to += sequence.size;
      done = next + 1;
    }
    std::memcpy(to, from + done, block_bytes);
    to += size - done;
    from += size;
    left -= size;
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
