// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <system_error>

#include <millrace/chat/value.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/utf8.hpp>

#include "python_text.hpp"

namespace millrace::chat {
namespace {

constexpr std::size_t first_chunk_bytes = std::size_t{16} << 10;
constexpr std::size_t largest_text_bytes = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t small_dict = 12;  // entries; a linear search is faster up to here

std::uint32_t slot_of(std::string_view key) {
  return static_cast<std::uint32_t>(std::hash<std::string_view>{}(key));
}

}  // namespace

const value* value::find(std::string_view key) const noexcept {
  const auto& dict = *static_cast<const dict_data*>(as_.object);
  if (dict.index == nullptr) {
    for (const dict_entry* entry = dict.entries; entry != dict.entries + dict.size; ++entry) {
      if (entry->key.is_string() && entry->key.text() == key) return &entry->item;
    }
    return nullptr;
  }
  for (std::uint32_t slot = slot_of(key) & dict.mask; dict.index[slot] != 0;
       slot = (slot + 1) & dict.mask) {
    const dict_entry& entry = dict.entries[dict.index[slot] - 1];
    if (entry.key.is_string() && entry.key.text() == key) return &entry.item;
  }
  return nullptr;
}

// ---------------------------------------------------------------------------------------------

char* value_pool::grow(std::size_t size_bytes, std::size_t alignment) {
  const std::size_t least = size_bytes + alignment;
  if (least > limit_bytes_ || used_bytes_ > limit_bytes_ - least) {
    throw error("the values need more than " + std::to_string(limit_bytes_) + " bytes of memory");
  }
  // Chunks double, so that a large conversation needs few of them.
  std::size_t size = std::max(
      std::min(std::max(used_bytes_, first_chunk_bytes), limit_bytes_ - used_bytes_), least);
  chunks_.push_back({std::unique_ptr<char[]>(new char[size]), size});
  used_bytes_ += size;
  next_ = chunks_.back().bytes.get();
  end_ = next_ + size;
  return next_;
}

void* value_pool::allocate(std::size_t size_bytes, std::size_t alignment) {
  const auto aligned = [&](char* at) {
    const auto address = std::bit_cast<std::uintptr_t>(at);
    return at + ((alignment - address % alignment) % alignment);
  };
  char* at = next_ == nullptr ? nullptr : aligned(next_);
  if (at == nullptr || at > end_ || size_bytes > static_cast<std::size_t>(end_ - at)) {
    at = aligned(grow(size_bytes, alignment));
  }
  next_ = at + size_bytes;
  return at;
}

std::string_view value_pool::concatenate(std::string_view left, std::string_view right) {
  if (right.empty()) return left;
  if (left.empty()) return right;
  if (left.size() > largest_text_bytes - right.size()) throw error("a string has 4 GiB or more");
  if (left.data() + left.size() == next_ &&
      right.size() <= static_cast<std::size_t>(end_ - next_)) {
    std::memcpy(next_, right.data(), right.size());
    next_ += right.size();
    return {left.data(), left.size() + right.size()};
  }
  auto* joined = static_cast<char*>(allocate(left.size() + right.size(), 1));
  std::memcpy(joined, left.data(), left.size());
  std::memcpy(joined + left.size(), right.data(), right.size());
  return {joined, left.size() + right.size()};
}

void value_pool::clear() noexcept {
  if (chunks_.empty()) return;
  // The last chunk is the largest; the next conversation probably fits in it.
  chunk last = std::move(chunks_.back());
  chunks_.clear();
  used_bytes_ = last.size;
  next_ = last.bytes.get();
  end_ = next_ + last.size;
  chunks_.push_back(std::move(last));  // keeps its capacity, so does not allocate
}

value value_pool::string(std::string_view text) {
  if (text.size() > largest_text_bytes) throw error("a string has 4 GiB or more");
  if (text.empty()) return value(std::string_view());
  auto* copy = static_cast<char*>(allocate(text.size(), 1));
  std::memcpy(copy, text.data(), text.size());
  return value(std::string_view(copy, text.size()));
}

value value_pool::list(std::span<const value> items) {
  if (items.size() > largest_text_bytes) throw error("a list has 2^32 items or more");
  value* copy = allocate_array<value>(items.size());
  std::uninitialized_copy(items.begin(), items.end(), copy);
  return value(std::span<const value>(copy, items.size()));
}

value value_pool::dict(std::span<const dict_entry> entries) {
  if (entries.size() > largest_text_bytes / 4) throw error("a dict has 2^30 members or more");
  auto* dict = new (allocate(sizeof(dict_data), alignof(dict_data))) dict_data;
  dict_entry* kept = allocate_array<dict_entry>(entries.size());
  dict->entries = kept;
  const value whole(value_kind::dict, dict);
  bool all_strings = true;
  for (const dict_entry& entry : entries) all_strings &= entry.key.is_string();
  std::uint32_t* index = nullptr;
  if (all_strings && entries.size() > small_dict) {
    const std::size_t slots = std::bit_ceil(entries.size() * 2);
    index = allocate_array<std::uint32_t>(slots);
    std::fill_n(index, slots, 0U);
    dict->index = index;
    dict->mask = static_cast<std::uint32_t>(slots - 1);
  }
  for (const dict_entry& entry : entries) {
    if (const value* there = find_key(whole, entry.key)) {
      // The entry is in `kept`, which is still being written.
      const_cast<value&>(*there) = entry.item;
      continue;
    }
    new (kept + dict->size) dict_entry(entry);
    ++dict->size;
    if (index != nullptr) {
      std::uint32_t slot = slot_of(entry.key.text()) & dict->mask;
      while (index[slot] != 0) slot = (slot + 1) & dict->mask;
      index[slot] = dict->size;
    }
  }
  return whole;
}

// ---------------------------------------------------------------------------------------------

namespace {

constexpr int deepest_json = 200;              // values in values
constexpr std::size_t longest_integer = 4300;  // digits; sys.set_int_max_str_digits() of Python

class json_reader {
 public:
  json_reader(std::string_view text, value_pool& pool) : text_(text), pool_(pool) {}

  value read() {
    space();
    value whole = any(0);
    space();
    if (at_ != text_.size()) fail("expected the end of the text after one JSON value");
    return whole;
  }

 private:
  [[noreturn]] void fail(const std::string& problem) const {
    throw format_error(at_, "JSON: " + problem);
  }

  void space() {
    while (at_ < text_.size() &&
           (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\r' || text_[at_] == '\t')) {
      ++at_;
    }
  }
  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(std::string_view word) {
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  value any(int depth) {
    if (depth > deepest_json) fail("more than 200 nested values");
    switch (peek()) {
      case '{':
        return dict(depth);
      case '[':
        return list(depth);
      case '"':
        return value(string());
      default:
        break;
    }
    if (take("null")) return {};
    if (take("true")) return value(true);
    if (take("false")) return value(false);
    if (take("NaN")) return value(std::numeric_limits<double>::quiet_NaN());
    if (take("Infinity")) return value(std::numeric_limits<double>::infinity());
    if (take("-Infinity")) return value(-std::numeric_limits<double>::infinity());
    return number();
  }

  value list(int depth) {
    ++at_;
    const std::size_t first = items_.size();
    space();
    if (peek() == ']') {
      ++at_;
      return pool_.list({});
    }
    for (;;) {
      space();
      items_.push_back(any(depth + 1));
      space();
      if (peek() == ']') break;
      if (peek() != ',') fail("expected , or ] after an item of a list");
      ++at_;
    }
    ++at_;
    const value made = pool_.list(std::span<const value>(items_).subspan(first));
    items_.resize(first);
    return made;
  }

  value dict(int depth) {
    ++at_;
    const std::size_t first = entries_.size();
    space();
    if (peek() == '}') {
      ++at_;
      return pool_.dict({});
    }
    for (;;) {
      space();
      if (peek() != '"') fail("expected a string as the key of an object");
      const value key(string());
      space();
      if (peek() != ':') fail("expected : after the key of an object");
      ++at_;
      space();
      const value item = any(depth + 1);
      entries_.push_back({key, item});
      space();
      if (peek() == '}') break;
      if (peek() != ',') fail("expected , or } after a member of an object");
      ++at_;
    }
    ++at_;
    const value made = pool_.dict(std::span<const dict_entry>(entries_).subspan(first));
    entries_.resize(first);
    return made;
  }

  value number() {
    const std::size_t begin = at_;
    const auto digits = [&] {
      const std::size_t first = at_;
      while (peek() >= '0' && peek() <= '9') ++at_;
      return at_ - first;
    };
    if (peek() == '-') ++at_;
    if (peek() == '0') {
      ++at_;
    } else if (digits() == 0) {
      at_ = begin;
      fail("expected a value");
    }
    bool real = false;
    const std::size_t whole_end = at_;
    if (peek() == '.') {
      ++at_;
      real = digits() != 0;
      if (!real) at_ = whole_end;
    }
    const std::size_t fraction_end = at_;
    if (peek() == 'e' || peek() == 'E') {
      ++at_;
      if (peek() == '+' || peek() == '-') ++at_;
      if (digits() == 0) {
        at_ = fraction_end;
      } else {
        real = true;
      }
    }
    const std::string_view text = text_.substr(begin, at_ - begin);
    if (real) return value(std::strtod(std::string(text).c_str(), nullptr));
    std::int64_t small = 0;
    const auto end = std::from_chars(text.data(), text.data() + text.size(), small);
    if (end.ec == std::errc()) return value(small);
    if (text.size() - (text[0] == '-' ? 1 : 0) > longest_integer) {
      fail("an integer has more than 4300 digits, the limit of Python");
    }
    return value(value_kind::big_integer, pool_.string(text).text());
  }

  std::uint32_t four_digits() {
    std::uint32_t unit = 0;
    const std::string_view digits = text_.substr(std::min(at_, text_.size()), 4);
    const auto end = std::from_chars(digits.data(), digits.data() + digits.size(), unit, 16);
    if (digits.size() != 4 || end.ptr != digits.data() + 4)
      fail("expected four hexadecimal digits after \\u");
    at_ += 4;
    return unit;
  }

  // Passes bytes that stand for themselves, eight at a time, and stops before any others.
  void pass_plain() noexcept {
    constexpr std::uint64_t ones = 0x0101010101010101;
    const auto has_zero = [](std::uint64_t word) { return (word - ones) & ~word; };
    for (; at_ + 8 <= text_.size(); at_ += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, text_.data() + at_, 8);
      const std::uint64_t others =
          word | (word - 0x20 * ones) | has_zero(word ^ '"' * ones) | has_zero(word ^ '\\' * ones);
      if ((others & 0x80 * ones) != 0) return;
    }
  }

  std::string_view string() {
    ++at_;
    const std::size_t begin = at_;
    // Most strings have no escapes: find the end, and check the bytes on the way.
    bool escapes = false;
    for (;;) {
      pass_plain();
      if (at_ >= text_.size()) fail("a string does not end");
      const auto byte = static_cast<unsigned char>(text_[at_]);
      if (byte == '"') break;
      if (byte == '\\') {
        escapes = true;
        at_ += 2;
      } else if (byte < 0x20) {
        fail("a string has a control character, expected an escape such as \\n");
      } else if (byte < 0x80) {
        ++at_;
      } else {
        const std::size_t size = formats::utf8_sequence_bytes(text_.substr(at_));
        if (size == 0) fail("a string is not UTF-8");
        at_ += size;
      }
    }
    const std::size_t end = at_;
    if (!escapes) {
      ++at_;
      return pool_.string(text_.substr(begin, end - begin)).text();
    }
    std::string& decoded = decoded_;
    decoded.clear();
    at_ = begin;
    for (;;) {
      const std::size_t next = std::min(text_.find('\\', at_), end);
      decoded += text_.substr(at_, next - at_);
      at_ = next;
      if (at_ == end) break;
      const char escape = text_[at_ + 1];
      constexpr std::string_view names = "\"\\/bfnrt";
      constexpr std::string_view bytes = "\"\\/\b\f\n\r\t";
      if (const auto found = names.find(escape); found != std::string_view::npos) {
        decoded += bytes[found];
        at_ += 2;
        continue;
      }
      if (escape != 'u') fail("an unknown escape in a string");
      at_ += 2;
      std::uint32_t point = four_digits();
      if (point >= 0xD800 && point < 0xDC00 && text_.substr(at_, 2) == "\\u") {
        at_ += 2;
        const std::uint32_t low = four_digits();
        if (low < 0xDC00 || low > 0xDFFF) fail("a lone surrogate, which has no UTF-8");
        point = 0x10000 + ((point - 0xD800) << 10) + (low - 0xDC00);
      } else if (point >= 0xD800 && point < 0xE000) {
        fail("a lone surrogate, which has no UTF-8");
      }
      formats::append_utf8(point, decoded);
    }
    at_ = end + 1;
    return pool_.string(decoded).text();
  }

  std::string_view text_;
  value_pool& pool_;
  std::size_t at_ = 0;
  std::string decoded_;
  std::vector<value> items_;         // of the lists that are being read
  std::vector<dict_entry> entries_;  // of the dicts that are being read
};

}  // namespace

value parse_json(std::string_view text, value_pool& pool) {
  return json_reader(text, pool).read();
}

}  // namespace millrace::chat
