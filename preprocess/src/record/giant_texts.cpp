// SPDX-License-Identifier: Apache-2.0
#include "record/giant_texts.hpp"

#include "input/json_text.hpp"

namespace millrace::preprocess {

giant_texts::giant_texts(const line_range& line, giant_value value, std::size_t window_bytes)
    : window_(line, window_bytes, value.offset_bytes), window_bytes_(window_bytes) {}

bool giant_texts::have(std::size_t count) {
  while (static_cast<std::size_t>(window_.end - window_.at) < count) {
    if (!window_.refill()) return false;
  }
  return true;
}

// Skips to the next text. The scanner has validated the line, so only brackets, commas and spaces
// are between two texts.
bool giant_texts::next() {
  if (!started_) {
    started_ = true;
    list_ = have(1) && *window_.at == '[';
  } else if (!list_) {
    return false;
  }
  for (; have(1); ++window_.at) {
    if (*window_.at == ']') return false;
    if (*window_.at == '"') {
      ++window_.at;
      return true;
    }
  }
  return false;
}

bool giant_texts::read(text_bytes& out) {
  if (!have(1)) return false;
  out.buffer.reserve(out.size + window_bytes_ + detail::block_bytes, out.size);
  char* const start = reinterpret_cast<char*>(out.buffer.data());
  char* to = start + out.size;
  // Decode only the bytes that are in memory now. If an escape at their end loads more bytes, leave
  // those to the next call.
  bool ended = false;
  const char* limit = window_.end;
  while (window_.at != limit && !ended) {
    window_.at = detail::pass_plain<true>(window_.at, limit, to);
    if (window_.at == limit) break;
    ended = *window_.at == '"';
    if (ended) {
      ++window_.at;
      break;
    }
    const std::size_t end_offset = window_.offset(limit);
    to = escape(to);
    if (window_.offset(window_.at) >= end_offset) break;
    limit = window_.at + (end_offset - window_.offset(window_.at));
  }
  out.size = static_cast<std::size_t>(to - start);
  return !ended;
}

char* giant_texts::escape(char* out) {
  if (!have(2)) return out;
  if (const char kind = window_.at[1]; kind != 'u') {
    *out++ = detail::short_escapes[detail::byte(kind)];
    window_.at += 2;
    return out;
  }
  int unit = have(6) ? detail::hex4(window_.at + 2) : 0xFFFD;
  window_.at += 6;
  if (detail::is_high_surrogate(unit) && have(6) && window_.at[0] == '\\' && window_.at[1] == 'u') {
    if (const int low = detail::hex4(window_.at + 2); detail::is_low_surrogate(low)) {
      unit = detail::code_point_of_pair(unit, low);
      window_.at += 6;
    }
  }
  if (detail::is_high_surrogate(unit) || detail::is_low_surrogate(unit)) {
    unit = 0xFFFD;
    ++lone_surrogates_;
  }
  return detail::put_utf8(out, unit);
}

}  // namespace millrace::preprocess
