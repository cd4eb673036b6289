// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "input/json_text.hpp"
#include "record/record_parser.hpp"
#include "record/wanted_texts.hpp"

namespace millrace::preprocess {

/// Deepest accepted nesting of objects and lists.
///
/// This is the limit of `json.loads` when it is called at the top level of a script (measured with
/// Python 3.11.2 and 3.11.7). The interpreter allows 1,000 nested calls; five are already in use,
/// and each level of nesting takes one. If `json.loads` is called inside functions, its limit is
/// slightly lower.
inline constexpr std::size_t max_nesting = 995;

/// Largest number of digits in an integer: Python's `sys.int_info.default_max_str_digits`. Numbers
/// with a fraction or an exponent may have any length.
inline constexpr std::size_t max_integer_digits = 4300;

namespace detail {

/// Receives a text that is not wanted, and drops it.
struct no_text {
  static constexpr bool is_kept = false;
  static const char* plain(const char* at, const char* end) {
    char* nowhere = nullptr;
    return pass_plain<false>(at, end, nowhere);
  }
  static void put(char) {}
  static void put_code_point(int) {}
};

/// Scans one line of JSON in one pass, without recursion. It accepts the grammar of Python 3.11's
/// `json.loads`.
///
/// `Bytes` is the source of the line. Its members `at` and `end` bound the bytes in memory:
///   bool refill()             reads more of the line after `end`, and may drop the bytes before
///                             `at`; returns false at the end of the line
///   std::size_t offset(at)    returns the offset of `at` in the line
/// `Record` receives the results:
///   wanted()                  returns the `wanted_texts` object to which keys and brackets are
///                             reported
///   text                      receives decoded texts; has the interface of no_text
///   begin_text(), take_key()  take_key() returns the key written to `text` since begin_text(), or
///                             nothing if the key is certainly not a wanted key
///   keeps_texts               true if wanted strings are also written to `text`
///   taken_text()              returns the string written to `text` since begin_text(); exists
///                             only if `keeps_texts` is true
/// Each function that parses a part of the line returns false if it has set the fault.
template <class Bytes, class Record>
class json_scanner {
 public:
  json_scanner(Bytes bytes, Record record) : in_(std::move(bytes)), record_(std::move(record)) {}

  Bytes& bytes() noexcept { return in_; }
  Record& record() noexcept { return record_; }

  bool document() {
    skip_space();
    root_offset_ = offset();
    if (more()) root_byte_ = *in_.at;
    if (!value()) return false;
    while (depth_ > 0) {
      if (!(in_object() ? member() : element())) return false;
    }
    skip_space();
    return !more() || fail("data after the value");
  }

  /// Call this after document() returned true. Returns a fault if the value in the line is not an
  /// object.
  std::optional<record_fault> fault_of_root() const {
    if (root_byte_ == '{') return std::nullopt;
    return record_fault{
        fault_kind::not_an_object, root_offset_,
        std::string("the line holds ") + name_of_value(root_byte_) + ", expected an object"};
  }
  std::size_t closing_brace() const { return closing_; }

  /// Call this after document() returned false. Returns the fault.
  ///
  /// @param line_bytes  the size of the line
  record_fault fault(std::size_t line_bytes) const {
    std::string what = fault_what_;
    if (fault_at_ == line_bytes) what += ", found the end of the line";
    return {fault_kind::invalid_json, fault_at_, std::move(what)};
  }

 private:
  using slot = wanted_texts::slot;

  std::size_t offset() const { return in_.offset(in_.at); }
  bool more() { return in_.at != in_.end || in_.refill(); }
  bool have(std::size_t count) {
    while (static_cast<std::size_t>(in_.end - in_.at) < count) {
      if (!in_.refill()) return false;
    }
    return true;
  }
  bool next_is(char c) { return more() && *in_.at == c; }
  bool in_object() const { return objects_[depth_ - 1]; }

  bool fail(const char* what) { return fail_at(offset(), what); }
  bool fail_at(std::size_t at, const char* what) {
    fault_at_ = at;
    fault_what_ = what;
    return false;
  }

  void skip_space() {
    do {
      const char* at = in_.at;
      while (at != in_.end && (*at == ' ' || *at == '\t' || *at == '\r' || *at == '\n')) ++at;
      in_.at = at;
    } while (in_.at == in_.end && in_.refill());
  }

  bool open(bool object) {
    static_assert(max_nesting == 995, "the message says so");
    if (depth_ == max_nesting) return fail("lists and objects nested deeper than 995 levels");
    objects_[depth_++] = object;
    first_ = true;
    ++in_.at;
    return true;
  }

  bool close() {
    if (in_object()) record_.wanted().leave(depth_);
    closing_ = offset();
    ++in_.at;
    --depth_;
    first_ = false;
    return true;
  }

  // Skips the separator between two members or two elements.
  bool comma(const char* otherwise) {
    if (!next_is(',')) return fail(otherwise);
    ++in_.at;
    skip_space();
    return true;
  }

  bool member() {
    skip_space();
    if (next_is('}')) return close();
    if (!first_ && !comma("expected ',' or '}' after a value")) return false;
    if (!next_is('"')) {
      return fail(first_ ? "expected a key in double quotes or '}'"
                         : "expected a key in double quotes after ','");
    }
    if (!(record_.wanted().looks_at(depth_) ? wanted_key() : string(unwanted_))) return false;
    skip_space();
    if (!next_is(':')) return fail("expected ':' after a key");
    ++in_.at;
    skip_space();
    return value();
  }

  bool element() {
    skip_space();
    if (next_is(']')) return close();
    if (!first_ && !comma("expected ',' or ']' after a value")) return false;
    return value();
  }

  bool wanted_key() {
    record_.begin_text();
    if (!string(record_.text)) return false;
    const std::optional<std::string_view> key = record_.take_key();
    // Ignore keys with lone surrogates. Each lone surrogate was replaced by U+FFFD, which must not
    // match a real U+FFFD in a wanted key.
    if (key && lone_surrogates_ == 0) {
      to_ = record_.wanted().match(depth_, *key);
    } else {
      to_ = nullptr;
      record_.wanted().pass(depth_);
    }
    to_depth_ = depth_;
    return true;
  }

  // Returns the slot (the results for one wanted key) that receives the value at the current place.
  // That value is the value of a wanted key, or an element of the list that is the value of a
  // wanted key. Returns null for any other value.
  slot* destination() const {
    return depth_ == to_depth_ || (depth_ == to_depth_ + 1 && to_list_) ? to_ : nullptr;
  }

  bool value() {
    first_ = false;
    if (more()) {
      if (depth_ == to_depth_) record_.wanted().enter(depth_, *in_.at, offset());
      if (slot* const to = destination(); to != nullptr) return wanted_value(*to);
    }
    return next_is('"') ? string(unwanted_) : other_value();
  }

  bool wanted_value(slot& to) {
    const bool in_list = depth_ != to_depth_;
    if (!in_list) {
      to_list_ = *in_.at == '[';
      to.found = true;
      to.list = to_list_;
      to.value_bytes = offset();
    }
    if (*in_.at != '"') {
      if ((in_list || !to_list_) && !to.wrong) {
        to.wrong = true;
        to.wrong_byte = *in_.at;
        to.offset_bytes = offset();
      }
      return other_value();
    }
    if constexpr (Record::keeps_texts) {
      record_.begin_text();
      if (!string(record_.text)) return false;
    } else {
      if (!string(unwanted_)) return false;
    }
    if (to.wrong) return true;
    if constexpr (Record::keeps_texts) {
      to.texts.push_back(record_.taken_text());
      to.lone_surrogates += lone_surrogates_;
    }
    ++to.strings;
    return true;
  }

  // Reads any value except a string.
  bool other_value() {
    if (!more()) return fail("expected a value");
    switch (*in_.at) {
      case '{':
        return open(true);
      case '[':
        return open(false);
      case 't':
        return word("true");
      case 'f':
        return word("false");
      case 'n':
        return word("null");
      case 'N':
        return word("NaN");
      case 'I':
        return word("Infinity");
      default:
        return *in_.at == '-' || is_digit(*in_.at) ? number() : fail("expected a value");
    }
  }

  bool word(std::string_view expected) {
    if (!have(expected.size()) || std::string_view(in_.at, expected.size()) != expected) {
      return fail("expected a value");
    }
    in_.at += expected.size();
    return true;
  }

  std::size_t skip_digits() {
    std::size_t digits = 0;
    for (; more() && is_digit(*in_.at); ++in_.at) ++digits;
    return digits;
  }

  bool number() {
    const std::size_t start = offset();
    if (*in_.at == '-') {
      ++in_.at;
      if (next_is('I')) return word("Infinity");
    }
    const bool zero = next_is('0');
    const std::size_t digits = skip_digits();
    if (digits == 0) return fail("expected a digit after '-'");
    if (zero && digits > 1) return fail_at(start, "a number with a leading zero");
    bool integer = true;
    if (next_is('.')) {
      ++in_.at;
      integer = false;
      if (skip_digits() == 0) return fail("expected a digit after '.'");
    }
    if (next_is('e') || next_is('E')) {
      ++in_.at;
      integer = false;
      if (next_is('+') || next_is('-')) ++in_.at;
      if (skip_digits() == 0) return fail("expected a digit in an exponent");
    }
    // Python accepts floats of any length, but limits the number of digits of integers.
    static_assert(max_integer_digits == 4300, "the message says so");
    if (integer && digits > max_integer_digits) {
      return fail_at(start, "an integer of more than 4300 digits");
    }
    return true;
  }

  // Reads a string, starting at its opening quote. Counts the lone surrogates in the string if its
  // text is kept.
  template <class Text>
  bool string(Text& text) {
    const std::size_t start = offset();
    ++in_.at;
    lone_surrogates_ = 0;
    for (;;) {
      in_.at = text.plain(in_.at, in_.end);
      while (next_is('\\')) {  // escapes often follow each other
        if (!escape(text)) return false;
      }
      if (!more()) return fail_at(start, "a string without its closing quote");
      if (*in_.at == '"') break;
      if (byte(*in_.at) < 0x20) return fail("a control character in a string");
    }
    ++in_.at;
    return true;
  }

  template <class Text>
  bool escape(Text& text) {
    const char kind = have(2) ? in_.at[1] : '\0';
    if (kind == 'u') return unicode_escape(text);
    const char meaning = short_escapes[byte(kind)];
    if (meaning == 0) return fail("a backslash that begins no escape");
    text.put(meaning);
    in_.at += 2;
    return true;
  }

  template <class Text>
  bool unicode_escape(Text& text) {
    int unit = have(6) ? hex4(in_.at + 2) : -1;
    if (unit < 0) return fail("expected four hexadecimal digits after \\u");
    in_.at += 6;
    if constexpr (Text::is_kept) {
      if (is_high_surrogate(unit) && have(6) && in_.at[0] == '\\' && in_.at[1] == 'u') {
        // If the second escape is not a low surrogate, leave it for the next call: it may begin a
        // pair itself.
        if (const int low = hex4(in_.at + 2); is_low_surrogate(low)) {
          unit = code_point_of_pair(unit, low);
          in_.at += 6;
        }
      }
      if (is_high_surrogate(unit) || is_low_surrogate(unit)) {
        unit = 0xFFFD;
        ++lone_surrogates_;
      }
      text.put_code_point(unit);
    }
    return true;
  }

  Bytes in_;  // by value, because a reference makes escapes slower
  Record record_;
  [[no_unique_address]] no_text unwanted_;

  char root_byte_ = 0;
  std::size_t root_offset_ = 0;
  std::size_t closing_ = 0;           // offset of the last closing bracket
  std::bitset<max_nesting> objects_;  // for each open level: true for an object, false for a list
  std::size_t depth_ = 0;             // number of open levels
  bool first_ = false;                // the innermost level has no member or element yet
  slot* to_ = nullptr;        // slot of the last compared key; null if that key is not wanted
  std::size_t to_depth_ = 0;  // depth of the object that contains the key of `to_`
  bool to_list_ = false;      // the value of the key of `to_` is a list
  std::int64_t lone_surrogates_ = 0;  // count in the last string that was kept

  std::size_t fault_at_ = 0;
  const char* fault_what_ = "";
};

}  // namespace detail
}  // namespace millrace::preprocess
