// SPDX-License-Identifier: Apache-2.0
#include "input/array_lines.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include <millrace/error.hpp>

#include "input/file_format.hpp"
#include "input/json_text.hpp"
#include "input/line_ends.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::size_t head_chunk_bytes = 4096;

bool is_space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

// The meaning of a byte outside strings. A `plain` byte is part of an element and needs no special
// treatment.
enum byte_kind : std::uint8_t { plain, space, line_end, quote, comma, opening, closing };
constexpr std::array<byte_kind, 256> byte_kinds = [] {
  std::array<byte_kind, 256> all{};
  all[' '] = all['\t'] = space;
  all['\n'] = all['\r'] = line_end;
  all['"'] = quote;
  all[','] = comma;
  all['['] = all['{'] = opening;
  all[']'] = all['}'] = closing;
  return all;
}();

// Returns whether a text is an array, or an empty optional if `head` is too short to decide. `head`
// is the beginning of the text; if `all` is true, it is the whole text. `searched` is the number of
// bytes of `head` already examined; each call updates it.
std::optional<bool> starts_array(std::string_view head, bool all, std::size_t& searched) {
  head = head.substr(0, array_lines::most_space_bytes);
  if (searched == 0 && head.starts_with(byte_order_mark)) searched = byte_order_mark.size();
  if (searched == 0 && !all && byte_order_mark.starts_with(head)) return std::nullopt;
  while (searched < head.size() && is_space(head[searched])) ++searched;
  if (searched < head.size()) return head[searched] == '[';
  if (all || head.size() == array_lines::most_space_bytes) return false;
  return std::nullopt;
}

}  // namespace

array_lines::array_lines(std::unique_ptr<byte_source> inner, std::filesystem::path name)
    : inner_(std::move(inner)), name_(std::move(name)) {}

bool array_lines::is_array() {
  std::size_t searched = 0;
  while (state_ == state::unknown) {
    const std::size_t used = head_.size();
    head_.resize(used + head_chunk_bytes);
    const std::size_t n = inner_->read(std::span(head_).subspan(used));
    head_.resize(used + n);
    const std::string_view text(reinterpret_cast<const char*>(head_.data()), head_.size());
    const auto found = starts_array(text, n == 0, searched);
    if (!found) continue;
    // Recognizing a foreign format, such as a zip archive, may need more bytes than a pipe delivers
    // at a time. A text that begins like a record is not foreign, so do not wait for more bytes.
    // The exception is UTF-16 or UTF-32 text: it can also begin like a record, but has a zero as
    // second byte.
    const bool begins_record = searched < text.size() && (text[searched] == '{' || *found);
    const bool sure = begins_record && searched + 1 < text.size() && text[searched + 1] != '\0';
    if (!sure && n != 0 && head_.size() < foreign_head_bytes) continue;
    state_ = *found ? state::before : state::as_it_is;
    if (!sure) expect_text(head_, name_.string());
  }
  return state_ != state::as_it_is;
}

std::size_t array_lines::read_inner(std::span<std::byte> out) {
  if (head_given_ == head_.size()) return inner_->read(out);
  const std::size_t n = std::min(out.size(), head_.size() - head_given_);
  std::memcpy(out.data(), head_.data() + head_given_, n);
  head_given_ += n;
  if (head_given_ == head_.size()) {
    head_ = {};
    head_given_ = 0;
  }
  return n;
}

std::size_t array_lines::read(std::span<std::byte> out) {
  if (!is_array()) return read_inner(out);
  if (problem_ == nullptr) {
    const std::size_t n = read_inner(out);
    const std::size_t good = convert(out.first(n));
    given_ += good;
    if (good != 0) return good;
    if (n == 0 && state_ != state::behind) fail("a JSON array without its closing ']'");
    if (problem_ == nullptr) return 0;
  }
  throw format_error(
      name_, given_,
      std::string(problem_) + " (the text starts with '[', so all of it is read as one array)");
}

void array_lines::fail(const char* problem) {
  problem_ = problem;
}

// Converts `bytes` in place. Returns the number of bytes before the first error, or the number of
// all bytes if there is none. An error sets `problem_`.
std::size_t array_lines::convert(std::span<std::byte> bytes) {
  auto* const begin = reinterpret_cast<char*>(bytes.data());
  char* const end = begin + bytes.size();
  char* at = begin;
  while (at != end && problem_ == nullptr) {
    switch (state_) {
      case state::before:
        at = open_array(at, end);
        break;
      case state::outside:
        at = convert_outside(at, end);
        break;
      case state::string:
        at = convert_string(at, end);
        break;
      case state::escape:
        state_ = state::string;  // the `string` state handles a line end after a backslash
        if (*at != '\n' && *at != '\r') ++at;
        break;
      default:
        at = pass_behind(at, end);
    }
  }
  return static_cast<std::size_t>(at - begin);
}

// Skips the `[` of the array, and before it the white space and any byte order mark.
char* array_lines::open_array(char* at, char* end) {
  for (; at != end; ++at) {
    if (*at == '\n' || *at == '\r') *at = ' ';
    if (*at != '[') continue;
    *at = ' ';
    depth_ = 1;
    state_ = state::outside;
    return at + 1;
  }
  return at;
}

char* array_lines::convert_outside(char* at, char* end) {
  for (; at != end; ++at) {
    const byte_kind what = byte_kinds[detail::byte(*at)];
    if (what == plain) {
      has_element_ = true;
    } else if (what == line_end) {
      *at = ' ';
    } else if (what != space) {
      if (!convert_mark(*at)) return at;
      if (state_ != state::outside) return at + 1;
    }
  }
  return at;
}

// Converts a byte outside strings. Returns false if this byte is an error.
bool array_lines::convert_mark(char& mark) {
  switch (mark) {
    case '"':
      has_element_ = true;
      state_ = state::string;
      return true;
    case '[':
    case '{':
      has_element_ = true;
      ++depth_;
      return true;
    case ',':
      return depth_ > 1 || separate(mark);
    default:
      if (depth_ > 1) {
        --depth_;
      } else if (mark == ']') {
        if (comma_ && !has_element_) {
          fail("a JSON array with a comma before its closing ']'");
          return false;
        }
        mark = ' ';
        state_ = state::behind;
      } else {
        has_element_ = true;
      }
      return true;
  }
}

// Replaces a comma between two elements by a line end. Returns false if no element precedes the
// comma.
bool array_lines::separate(char& mark) {
  if (!has_element_) {
    fail("a JSON array with no element before a comma");
    return false;
  }
  mark = '\n';
  has_element_ = false;
  comma_ = true;
  return true;
}

char* array_lines::convert_string(char* at, char* end) {
  char* ignored = nullptr;
  for (; at != end; ++at) {
    at += detail::pass_plain<false>(at, end, ignored) - at;
    if (at == end) break;
    if (*at == '"' || *at == '\\') {
      state_ = *at == '"' ? state::outside : state::escape;
      return at + 1;
    }
    if (*at == '\n' || *at == '\r') *at = '\x01';
  }
  return at;
}

char* array_lines::pass_behind(char* at, char* end) {
  for (; at != end; ++at) {
    if (!is_space(*at)) {
      fail("a JSON array with other data after its closing ']'");
      return at;
    }
    if (*at == '\n' || *at == '\r') *at = ' ';
  }
  return at;
}

}  // namespace millrace::preprocess
