// SPDX-License-Identifier: Apache-2.0
#include "exact_json.hpp"

#include <simdjson.h>

#include <bit>
#include <bitset>
#include <utility>

#include "json_text.hpp"

namespace millrace::preprocess {
namespace {

// Room for texts is taken by powers of two, but given back after a line that needed more than this.
constexpr std::size_t kept_room_bytes = std::size_t{4} << 20;

}  // namespace

// One pass over one line. Members that return false have left a fault.
class exact_json::scanner {
  using slot = wanted_texts::slot;

 public:
  scanner(exact_json& json, std::string_view line)
      : json_(json), begin_(line.data()), end_(begin_ + line.size()), at_(begin_) {
    out_ = json.room_.get();
  }

  bool document() {
    skip_space();
    root_ = at_;
    if (!value()) return false;
    while (depth_ > 0) {
      if (!(in_object() ? member() : element())) return false;
    }
    skip_space();
    return at_ == end_ || fail(at_, "data after the value");
  }

  // After document() returned true.
  char root_byte() const { return *root_; }
  std::size_t root_offset() const { return offset(root_); }
  std::size_t closing_brace() const { return offset(closing_); }

  // After document() returned false.
  record_fault fault() const {
    std::string what = fault_what_;
    if (fault_at_ == end_) what += ", found the end of the line";
    return {fault_kind::invalid_json, offset(fault_at_), std::move(what)};
  }

 private:
  std::size_t offset(const char* at) const { return static_cast<std::size_t>(at - begin_); }
  std::size_t left() const { return static_cast<std::size_t>(end_ - at_); }
  bool next_is(char c) const { return at_ != end_ && *at_ == c; }
  bool in_object() const { return objects_[depth_ - 1]; }

  bool fail(const char* at, const char* what) {
    fault_at_ = at;
    fault_what_ = what;
    return false;
  }

  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
  }

  bool open(bool object) {
    static_assert(max_nesting == 995, "the message says so");
    if (depth_ == max_nesting) return fail(at_, "lists and objects nested deeper than 995 levels");
    objects_[depth_++] = object;
    first_ = true;
    ++at_;
    return true;
  }

  bool close() {
    if (in_object()) json_.wanted_.leave(depth_);
    closing_ = at_++;
    --depth_;
    first_ = false;
    return true;
  }

  // Passes what stands between two members or two elements.
  bool comma(const char* otherwise) {
    if (!next_is(',')) return fail(at_, otherwise);
    ++at_;
    skip_space();
    return true;
  }

  bool member() {
    skip_space();
    if (next_is('}')) return close();
    if (!first_ && !comma("expected ',' or '}' after a value")) return false;
    if (!next_is('"')) {
      return fail(at_, first_ ? "expected a key in double quotes or '}'"
                              : "expected a key in double quotes after ','");
    }
    if (!(json_.wanted_.looks_at(depth_) ? wanted_key() : string<false>())) return false;
    skip_space();
    if (!next_is(':')) return fail(at_, "expected ':' after a key");
    ++at_;
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
    char* const start = out_;
    if (!string<true>()) return false;
    const std::string_view key(start, static_cast<std::size_t>(out_ - start));
    out_ = start;
    // A wanted key may itself hold a U+FFFD: it is not what stands for a lone surrogate.
    to_ = lone_surrogates_ == 0 ? json_.wanted_.match(depth_, key) : nullptr;
    to_depth_ = depth_;
    return true;
  }

  // Where the value at this place goes: it is that of a wanted key, or in a list that is.
  slot* destination() const {
    return depth_ == to_depth_ || (depth_ == to_depth_ + 1 && to_list_) ? to_ : nullptr;
  }

  bool value() {
    first_ = false;
    if (at_ != end_) {
      if (depth_ == to_depth_) json_.wanted_.enter(depth_, *at_, offset(at_));
      if (slot* const to = destination(); to != nullptr) return wanted_value(*to);
    }
    return next_is('"') ? string<false>() : other_value();
  }

  bool wanted_value(slot& to) {
    const bool in_list = depth_ != to_depth_;
    if (!in_list) {
      to_list_ = *at_ == '[';
      to.found = true;
      to.list = to_list_;
    }
    if (*at_ != '"') {
      if ((in_list || !to_list_) && !to.wrong) {
        to.wrong = true;
        to.wrong_byte = *at_;
        to.offset_bytes = offset(at_);
      }
      return other_value();
    }
    char* const start = out_;
    if (!string<true>()) return false;
    if (!to.wrong) {
      to.texts.emplace_back(start, static_cast<std::size_t>(out_ - start));
      to.lone_surrogates += lone_surrogates_;
    }
    return true;
  }

  // Any value but a string.
  bool other_value() {
    if (at_ == end_) return fail(at_, "expected a value");
    switch (*at_) {
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
        return *at_ == '-' || detail::is_digit(*at_) ? number() : fail(at_, "expected a value");
    }
  }

  bool word(std::string_view expected) {
    if (std::string_view(at_, left()).substr(0, expected.size()) != expected) {
      return fail(at_, "expected a value");
    }
    at_ += expected.size();
    return true;
  }

  std::size_t skip_digits() {
    const char* const start = at_;
    while (at_ != end_ && detail::is_digit(*at_)) ++at_;
    return static_cast<std::size_t>(at_ - start);
  }

  bool number() {
    const char* const start = at_;
    if (*at_ == '-') {
      ++at_;
      if (next_is('I')) return word("Infinity");
    }
    const bool zero = next_is('0');
    const std::size_t digits = skip_digits();
    if (digits == 0) return fail(at_, "expected a digit after '-'");
    if (zero && digits > 1) return fail(start, "a number with a leading zero");
    bool integer = true;
    if (next_is('.')) {
      ++at_;
      integer = false;
      if (skip_digits() == 0) return fail(at_, "expected a digit after '.'");
    }
    if (next_is('e') || next_is('E')) {
      ++at_;
      integer = false;
      if (next_is('+') || next_is('-')) ++at_;
      if (skip_digits() == 0) return fail(at_, "expected a digit in an exponent");
    }
    // Python reads floats of any length, but turns no long integer into a number.
    static_assert(max_integer_digits == 4300, "the message says so");
    if (integer && digits > max_integer_digits) {
      return fail(start, "an integer of more than 4300 digits");
    }
    return true;
  }

  // A string, at its opening quote; `Keep` decodes it to out_ and counts its lone surrogates.
  template <bool Keep>
  bool string() {
    const char* const start = at_++;
    lone_surrogates_ = 0;
    for (;;) {
      at_ = detail::pass_plain<Keep>(at_, end_, out_);
      while (next_is('\\')) {  // escapes often come in rows
        if (!escape<Keep>()) return false;
      }
      if (at_ == end_) return fail(start, "a string without its closing quote");
      if (*at_ == '"') break;
      if (detail::byte(*at_) < 0x20) return fail(at_, "a control character in a string");
    }
    ++at_;
    return true;
  }

  template <bool Keep>
  bool escape() {
    const char kind = left() > 1 ? at_[1] : '\0';
    if (kind == 'u') return unicode_escape<Keep>();
    const char meaning = detail::short_escapes[detail::byte(kind)];
    if (meaning == 0) return fail(at_, "a backslash that begins no escape");
    if constexpr (Keep) *out_++ = meaning;
    at_ += 2;
    return true;
  }

  template <bool Keep>
  bool unicode_escape() {
    int unit = left() < 6 ? -1 : detail::hex4(at_ + 2);
    if (unit < 0) return fail(at_, "expected four hexadecimal digits after \\u");
    at_ += 6;
    if constexpr (Keep) {
      if (detail::is_high_surrogate(unit) && left() >= 6 && at_[0] == '\\' && at_[1] == 'u') {
        // Anything but a low surrogate is left for the next turn: it may begin a pair itself.
        if (const int low = detail::hex4(at_ + 2); detail::is_low_surrogate(low)) {
          unit = 0x10000 + (unit - 0xD800) * 0x400 + (low - 0xDC00);
          at_ += 6;
        }
      }
      if (detail::is_high_surrogate(unit) || detail::is_low_surrogate(unit)) {
        unit = 0xFFFD;
        ++lone_surrogates_;
      }
      out_ = detail::put_utf8(out_, unit);
    }
    return true;
  }

  exact_json& json_;
  const char* const begin_;
  const char* const end_;
  const char* at_;
  char* out_;

  const char* root_ = nullptr;
  const char* closing_ = nullptr;     // the last bracket that closed something
  std::bitset<max_nesting> objects_;  // of each open level: is it an object?
  std::size_t depth_ = 0;             // open levels
  bool first_ = false;                // the innermost was opened just now
  slot* to_ = nullptr;                // of the last key that was looked at, if it is wanted
  std::size_t to_depth_ = 0;          // of the object with that key
  bool to_list_ = false;              // and its value is a list
  std::int64_t lone_surrogates_ = 0;  // in the last string that was kept

  const char* fault_at_ = nullptr;
  const char* fault_what_ = nullptr;
};

exact_json::exact_json(std::vector<std::string> keys) : wanted_(plain_keys(std::move(keys))) {}
exact_json::exact_json(std::span<const text_key> keys) : wanted_({keys.begin(), keys.end()}) {}

// Decoding never makes a string longer, so a line's texts have room in its own size.
void exact_json::make_room(std::size_t line_bytes) {
  const std::size_t needed = line_bytes + detail::block_bytes;
  if (needed <= room_bytes_ && (room_bytes_ <= kept_room_bytes || needed > kept_room_bytes)) return;
  room_.reset();
  room_bytes_ = needed > kept_room_bytes ? needed + needed / 8 : std::bit_ceil(needed);
  room_ = std::make_unique_for_overwrite<char[]>(room_bytes_);
}

std::optional<record_fault> exact_json::parse(std::string_view line) {
  wanted_.start();
  if (!simdjson::validate_utf8(line.data(), line.size())) {
    return record_fault{fault_kind::invalid_utf8, detail::first_invalid_utf8(line), "not UTF-8"};
  }
  make_room(line.size());
  scanner scan(*this, line);
  if (!scan.document()) return scan.fault();
  if (scan.root_byte() != '{') {
    return record_fault{
        fault_kind::not_an_object, scan.root_offset(),
        std::string("the line holds ") + name_of_value(scan.root_byte()) + ", expected an object"};
  }
  return wanted_.fault(scan.closing_brace());
}

}  // namespace millrace::preprocess
