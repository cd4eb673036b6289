// SPDX-License-Identifier: Apache-2.0
#include "record/quick_json.hpp"

#include <simdjson.h>

#include <algorithm>
#include <bit>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "input/byte_buffer.hpp"
#include "input/json_text.hpp"
#include "record/json_scanner.hpp"

namespace millrace::preprocess {
namespace {

using detail::byte;
using detail::is_digit;

// A string is decoded in windows. The plain bytes of a window are copied in chunks. The last chunk
// may end after the window.
constexpr std::size_t window_bytes = 64;
constexpr std::size_t chunk_bytes = 32;
static_assert(text_padding_bytes >= window_bytes + chunk_bytes);

// Values outside and inside wanted objects may each be nested this deep.
constexpr std::size_t deepest = 64;
static_assert(2 * deepest < max_nesting);

constexpr std::size_t unit_bytes = 6;  // size of \uXXXX

// Returns the bytes among the first 64 at `at` that are not plain: bit i is set if byte i is a
// quote, a backslash or a control character.
std::uint64_t stops_of(const char* at) {
  std::uint64_t stops = 0;
#if defined(__SSE2__)
  const __m128i quote = _mm_set1_epi8('"');
  const __m128i backslash = _mm_set1_epi8('\\');
  const __m128i last_control = _mm_set1_epi8(0x1F);
  for (unsigned i = 0; i < window_bytes; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + i));
    const __m128i found =
        _mm_or_si128(_mm_or_si128(_mm_cmpeq_epi8(bytes, quote), _mm_cmpeq_epi8(bytes, backslash)),
                     _mm_cmpeq_epi8(_mm_max_epu8(bytes, last_control), last_control));
    stops |= std::uint64_t{static_cast<unsigned>(_mm_movemask_epi8(found))} << i;
  }
#else
  constexpr std::uint64_t ones = 0x0101010101010101;
  constexpr std::uint64_t lows = ones * 0x7F;
  const auto not_zero = [](std::uint64_t word) { return ((word & lows) + lows) | word; };
  for (unsigned i = 0; i < window_bytes; i += 8) {
    std::uint64_t word;
    std::memcpy(&word, at + i, 8);
    const std::uint64_t plain =
        not_zero(word ^ ones * '"') & not_zero(word ^ ones * '\\') & not_zero(word & ones * 0xE0);
    stops |= (((~plain & ~lows) >> 7) * 0x0102040810204080 >> 56) << i;
  }
#endif
  return stops;
}

}  // namespace

/// One pass over one line. Functions that return false leave the line to exact_json.
class quick_json::reading {
 public:
  reading(quick_json& json, std::string_view line)
      : json_(json),
        at_(line.data()),
        end_(line.data() + line.size()),
        out_(json.room_.of(line.size() + text_padding_bytes)) {}

  bool record() {
    skip_space();
    if (next() != '{' || !object(json_.root_, 1)) return false;
    skip_space();
    return at_ == end_;
  }

 private:
  // Returns 0 at the end of the line: no part of the grammar begins with it.
  char next() const { return at_ == end_ ? '\0' : *at_; }
  bool take(char expected) {
    if (next() != expected) return false;
    ++at_;
    return true;
  }

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
  }

  // Takes a key and the colon after it.
  bool take_key(std::string_view& key) {
    if (!take('"')) return false;
    const char* const begin = at_;
    pass_plain();
    key = {begin, static_cast<std::size_t>(at_ - begin)};
    return take('"') && take_colon();
  }

  bool take_colon() {
    skip_space();
    if (!take(':')) return false;
    skip_space();
    return true;
  }

  // Takes the members of an object that may have wanted keys, from its opening bracket on.
  bool object(const node& of, std::size_t depth) {
    if (depth > deepest) return false;
    ++at_;
    skip_space();
    if (take('}')) return true;
    for (;;) {
      std::string_view key;
      if (!take_key(key)) return false;
      const auto wanted = std::ranges::find(of.inner, key, &node::key);
      if (!(wanted == of.inner.end() ? skip_value() : wanted_value(*wanted, depth))) return false;
      skip_space();
      if (take('}')) return true;
      if (!take(',')) return false;
      skip_space();
    }
  }

  // If the key occurred before in its object, its earlier value does not count.
  bool wanted_value(const node& of, std::size_t depth) {
    json_.forget_values(of);
    if (!of.slot) return next() == '{' && object(of, depth + 1);
    slot& to = json_.slots_[*of.slot];
    to.found = true;
    return next() == '[' ? list(to) : text(to);
  }

  bool list(slot& to) {
    ++at_;
    skip_space();
    if (take(']')) return true;
    for (;;) {
      if (!text(to)) return false;
      skip_space();
      if (take(']')) return true;
      if (!take(',')) return false;
      skip_space();
    }
  }

  bool text(slot& to) {
    if (!take('"')) return false;
    const char* const begin = at_;
    pass_plain();
    const auto plain_bytes = static_cast<std::size_t>(at_ - begin);
    if (take('"')) {
      to.texts.emplace_back(begin, plain_bytes);
      return true;
    }
    char* const text = out_;
    std::memcpy(out_, begin, plain_bytes);
    out_ += plain_bytes;
    if (!decode()) return false;
    to.texts.emplace_back(text, static_cast<std::size_t>(out_ - text));
    return true;
  }

  // Decodes the rest of a string to `out_` and passes its closing quote. The stops of a window are
  // found at once, so no escape waits for the one before. What follows the end of the line may be
  // decoded too: it has room, and only a quote before the end counts.
  bool decode() {
    const char* window = at_;
    char* out = out_;
    while (window < end_) {
      std::uint64_t stops = stops_of(window);
      std::size_t from = 0;
      do {
        const auto stop = static_cast<std::size_t>(std::countr_zero(stops));
        std::memcpy(out, window + from, chunk_bytes);
        for (std::size_t i = from + chunk_bytes; i < stop; i += chunk_bytes) {
          std::memcpy(out + i - from, window + i, chunk_bytes);
        }
        out += stop - from;
        from = stop;
        if (stop == window_bytes) break;
        const char* const at = window + stop;
        if (*at != '\\') {
          at_ = at;
          out_ = out;
          return at < end_ && take('"');
        }
        if (const char meaning = detail::short_escapes[byte(at[1])]; meaning != '\0') {
          *out++ = meaning;
          from += 2;
        } else {
          const std::size_t bytes = decode_code_point(at, out);
          if (bytes == 0) return false;
          from += bytes;
        }
        if (from < window_bytes) stops &= ~std::uint64_t{0} << from;
      } while (from < window_bytes);
      window += from;
    }
    return false;
  }

  // Decodes \uXXXX, or two of them that form a pair. Returns their size, or 0 if there is a lone
  // surrogate or no such escape.
  static std::size_t decode_code_point(const char* at, char*& out) {
    int unit = unit_at(at);
    std::size_t bytes = unit_bytes;
    if (detail::is_high_surrogate(unit)) {
      const int low = unit_at(at + unit_bytes);
      if (!detail::is_low_surrogate(low)) return 0;
      unit = detail::code_point_of_pair(unit, low);
      bytes += unit_bytes;
    }
    if (unit < 0 || detail::is_low_surrogate(unit)) return 0;
    out = detail::put_utf8(out, unit);
    return bytes;
  }

  // Returns the value of the escape \uXXXX at `at`, or a negative number if there is none.
  static int unit_at(const char* at) {
    return at[0] == '\\' && at[1] == 'u' ? detail::hex4(at + 2) : -1;
  }

  void pass_plain() {
    char* nowhere = nullptr;
    at_ = detail::pass_plain<false>(at_, end_, nowhere);
  }

  // Skips a string, from behind its opening quote on.
  bool skip_string() {
    for (pass_plain(); next() == '\\'; pass_plain()) {
      if (detail::short_escapes[byte(at_[1])] != '\0') {
        at_ += 2;
      } else if (unit_at(at_) >= 0) {
        at_ += unit_bytes;
      } else {
        return false;
      }
      if (at_ > end_) return false;
    }
    return take('"');
  }

  bool skip_key() { return take('"') && skip_string() && take_colon(); }

  bool skip_value() {
    std::uint64_t objects = 0;  // per open level, the innermost in bit 0: whether it is an object
    for (std::size_t depth = 0;;) {
      const bool object = next() == '{';
      if (object || next() == '[') {
        ++at_;
        skip_space();
        if (!take(object ? '}' : ']')) {
          if (depth++ == deepest) return false;
          objects = objects << 1 | (object ? 1 : 0);
          if (object && !skip_key()) return false;
          continue;
        }
      } else if (!skip_scalar()) {
        return false;
      }
      for (;; --depth, objects >>= 1) {  // close the levels that end here
        if (depth == 0) return true;
        skip_space();
        if (take(',')) break;
        if (!take((objects & 1) != 0 ? '}' : ']')) return false;
      }
      skip_space();
      if ((objects & 1) != 0 && !skip_key()) return false;
    }
  }

  bool skip_scalar() {
    switch (next()) {
      case '"':
        ++at_;
        return skip_string();
      case 't':
        return skip_word("true");
      case 'f':
        return skip_word("false");
      case 'n':
        return skip_word("null");
      default:
        return skip_number();
    }
  }

  bool skip_word(std::string_view word) {
    if (!std::string_view(at_, end_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }

  bool skip_digits() {
    const char* const begin = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != begin;
  }

  bool skip_number() {
    const char* const begin = at_;
    take('-');
    if (!take('0') && !skip_digits()) return false;
    if (take('.') && !skip_digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      if (!skip_digits()) return false;
    }
    return at_ - begin <= std::ptrdiff_t{max_integer_digits};
  }

  quick_json& json_;
  const char* at_;
  const char* end_;
  char* out_;
};

quick_json::quick_json(std::span<const text_key> keys) : slots_(keys.size()) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    node* at = &root_;
    for (const std::string& key : keys[i].path) {
      auto known = std::ranges::find(at->inner, key, &node::key);
      if (known == at->inner.end()) known = at->inner.insert(known, node{key, {}, {}});
      at = &*known;
    }
    at->slot = i;
  }
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as the longest path
void quick_json::forget_values(const node& of) {
  if (of.slot) {
    slots_[*of.slot].found = false;
    forget(slots_[*of.slot].texts);
  }
  for (const node& each : of.inner) forget_values(each);
}

bool quick_json::parse(std::string_view line) {
  forget_values(root_);
  return simdjson::validate_utf8(line.data(), line.size()) && reading(*this, line).record() &&
         std::ranges::all_of(slots_, &slot::found);
}

}  // namespace millrace::preprocess
