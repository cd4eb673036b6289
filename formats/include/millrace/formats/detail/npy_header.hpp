// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/in_quotes.hpp>

namespace millrace::formats {

inline constexpr std::size_t npy_prefix_bytes = 10;  ///< where the header text starts
inline constexpr std::size_t npy_max_rank = 64;      ///< numpy 2's own limit

/// An element type: numpy's letter for the kind (b bool, i signed, u unsigned, f float), and a
/// size.
struct npy_type {
  char kind = 'u';
  std::uint8_t size_bytes = 1;
  bool operator==(const npy_type&) const = default;
};

/// The element type that holds `T`: an integer of 1 to 8 bytes, float or double. Store booleans as
/// uint8 and pass `npy_bool`, because a file can hold bytes other than 0 and 1. Such a byte in a
/// C++ bool would be undefined behavior.
template <class T>
constexpr npy_type npy_type_of() noexcept {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool> && sizeof(T) <= 8);
  const char integer = std::is_signed_v<T> ? 'i' : 'u';
  return {std::is_floating_point_v<T> ? 'f' : integer, sizeof(T)};
}
inline constexpr npy_type npy_bool = {'b', 1};

/// numpy's name of the type in a header: "<i4", or "|u1" for a single byte, which has no byte
/// order.
inline std::string npy_descr(npy_type type) {
  return {type.size_bytes == 1 ? '|' : '<', type.kind, static_cast<char>('0' + type.size_bytes)};
}

/// The shape as Python writes it: "()", "(3,)", "(3, 2)".
inline std::string npy_shape_text(std::span<const std::uint64_t> shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  }
  return text += shape.size() == 1 ? ",)" : ")";
}

/// The contents of a header text.
struct npy_header {
  npy_type type;
  std::vector<std::uint64_t> shape;
  std::size_t shape_offset = 0;  ///< byte of the file at which the shape starts, for messages
};

/// Parses the header text: a Python dict, in the subset of Python literals that numpy writes.
///
/// @throws format_error  the text is not such a dict, or its dtype or order is not supported.
///                       Offsets count from the start of the file.
npy_header parse_npy_header(std::string_view text);

// ---------------------------------------------------------------------------------------------

namespace detail {

class npy_header_parser {
 public:
  explicit npy_header_parser(std::string_view text) noexcept : text_(text) {}

  npy_header parse() &&;

 private:
  [[noreturn]] void fail(std::size_t at, const std::string& problem) const {
    throw format_error(npy_prefix_bytes + at, problem);
  }
  /// Fails because the text has something else here than what is expected.
  [[noreturn]] void expected(const std::string& what) const {
    fail(at_, "expected " + what + ", found " +
                  (at_ < text_.size() ? in_quotes(text_.substr(at_, 1)) : "the end of the header"));
  }
  void skip_space() {
    while (at_ < text_.size() && std::string_view(" \t\r\n\f").find(text_[at_]) != text_.npos)
      ++at_;
  }
  bool accept(char c) {
    skip_space();
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c, const char* where) {
    if (!accept(c)) expected(std::string("'") + c + "' " + where);
  }
  std::string_view quoted();
  bool boolean();
  std::uint64_t number();
  void parse_descr();
  void parse_shape();

  std::string_view text_;
  std::size_t at_ = 0;  // <= text_.size()
  npy_header header_;
};

inline npy_header npy_header_parser::parse() && {
  constexpr std::array<std::string_view, 3> keys = {"descr", "fortran_order", "shape"};
  std::array<bool, 3> seen = {};
  bool fortran_order = false;
  std::size_t fortran_order_at = 0;
  expect('{', "where the header starts");
  while (!accept('}')) {
    skip_space();
    const std::size_t key_at = at_;
    const std::string_view name = quoted();
    const auto key = std::ranges::find(keys, name);
    if (key == keys.end()) {
      fail(key_at, "expected the key descr, fortran_order or shape, found " + in_quotes(name));
    }
    const auto which = static_cast<std::size_t>(key - keys.begin());
    if (seen[which]) {
      fail(key_at, "expected each key once, found " + std::string(*key) + " a second time");
    }
    seen[which] = true;
    expect(':', "after a key");
    skip_space();
    if (which == 0) parse_descr();
    if (which == 1) {
      fortran_order_at = at_;
      fortran_order = boolean();
    }
    if (which == 2) parse_shape();
    if (!accept(',')) {
      expect('}', "or ',' after a value");
      break;
    }
  }
  skip_space();
  if (at_ != text_.size()) expected("nothing but space after the header's '}'");
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (seen[i]) continue;
    fail(0, "expected the keys descr, fortran_order and shape, found no " + std::string(keys[i]));
  }
  if (fortran_order && header_.shape.size() > 1) {
    fail(fortran_order_at, "the array is column-major (fortran_order), expected row-major");
  }
  return std::move(header_);
}

inline std::string_view npy_header_parser::quoted() {
  const char quote = accept('"') ? '"' : '\'';
  if (quote == '\'') expect('\'', "where a string starts");
  const std::size_t end = text_.find(quote, at_);
  if (end == text_.npos) {
    fail(at_, "expected a string that ends, found the end of the header inside it");
  }
  const auto inside = text_.substr(at_, end - at_);
  at_ = end + 1;
  return inside;
}

inline bool npy_header_parser::boolean() {
  for (const bool value : {false, true}) {
    const std::string_view word = value ? "True" : "False";
    if (text_.substr(at_).starts_with(word)) {
      at_ += word.size();
      return value;
    }
  }
  expected("True or False");
}

inline std::uint64_t npy_header_parser::number() {
  skip_space();
  const std::size_t begin = at_;
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  std::uint64_t value = 0;
  bool fits = true;
  for (; at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9'; ++at_) {
    const auto digit = static_cast<std::uint64_t>(text_[at_] - '0');
    fits = fits && value <= (most - digit) / 10;
    if (fits) value = value * 10 + digit;
  }
  if (at_ == begin) expected("a size of 0 or more");
  const std::string_view digits = text_.substr(begin, at_ - begin);
  if (digits.size() > 1 && digits[0] == '0') {
    fail(begin, "expected a size without a leading 0, found " + in_quotes(digits));
  }
  if (!fits) fail(begin, "expected a size of at most 2^63 - 1, found " + in_quotes(digits));
  return value;
}

inline void npy_header_parser::parse_descr() {
  const std::size_t begin = at_;
  if (at_ < text_.size() && (text_[at_] == '[' || text_[at_] == '(')) {
    fail(begin, "the array is of structures, expected plain numbers");
  }
  const std::string_view descr = quoted();
  std::string_view code = descr;
  // As in numpy, '=' or no mark means the byte order of this machine, and '|' means any order.
  const char order =
      !code.empty() && std::string_view("<>=|").find(code[0]) != code.npos ? code[0] : '=';
  if (code.starts_with(order)) code.remove_prefix(1);
  constexpr std::array<std::string_view, 11> known = {"b1", "i1", "i2", "i4", "i8", "u1",
                                                      "u2", "u4", "u8", "f4", "f8"};
  if (std::ranges::find(known, code) == known.end()) {
    fail(begin,
         "expected numbers (b1, i1 to i8, u1 to u8, f4, f8), found dtype " + in_quotes(descr, 20));
  }
  header_.type = {code[0], static_cast<std::uint8_t>(code[1] - '0')};
  if (order == '>' && header_.type.size_bytes > 1) {
    fail(begin, "expected little-endian numbers, found dtype '" + std::string(descr) + "'");
  }
}

inline void npy_header_parser::parse_shape() {
  header_.shape_offset = npy_prefix_bytes + at_;
  expect('(', "where the shape starts");
  auto& shape = header_.shape;
  while (!accept(')')) {
    if (shape.size() == npy_max_rank) {
      fail(at_, "expected at most 64 sizes in the shape, found a 65th");
    }
    shape.push_back(number());
    if (accept(',')) continue;
    if (shape.size() == 1) expected("',' after the only size of a shape, as in (3,)");
    expect(')', "or ',' after a size");
    break;
  }
}

}  // namespace detail

inline npy_header parse_npy_header(std::string_view text) {
  return detail::npy_header_parser(text).parse();
}

}  // namespace millrace::formats
