// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "regex/pattern_tree.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {

/// A read position in a pattern.
class pattern_reader {
 public:
  explicit pattern_reader(std::string_view pattern) : pattern_(pattern) {}

  bool at_end() const noexcept { return at_ == pattern_.size(); }
  std::size_t offset() const noexcept { return at_; }
  void go_to(std::size_t offset) noexcept { at_ = offset; }
  bool sees(std::string_view text) const noexcept { return pattern_.substr(at_).starts_with(text); }
  bool take(std::string_view text) noexcept {
    if (!sees(text)) return false;
    at_ += text.size();
    return true;
  }
  /// @pre not at_end()
  std::uint32_t next() noexcept {
    const code_point point = code_point_at(pattern_, at_);
    at_ += point.size_bytes;
    return point.value;
  }
  /// Takes the text up to the next `end`, and `end` itself. Returns the text without `end`. If
  /// there is no `end`, returns nullopt and keeps the read position.
  std::optional<std::string_view> take_until(char end) noexcept {
    const std::size_t found = pattern_.find(end, at_);
    if (found == std::string_view::npos) return std::nullopt;
    const std::string_view text = pattern_.substr(at_, found - at_);
    at_ = found + 1;
    return text;
  }
  [[noreturn]] void fail(const std::string& problem) const { throw pattern_error(at_, problem); }

 private:
  std::string_view pattern_;
  std::size_t at_ = 0;
};

/// The meaning of an escape sequence: one character, or a set of characters.
struct escape {
  bool is_set = false;
  std::uint32_t point = 0;
  code_point_set set;
};

/// Reads an escape sequence that stands for characters. The backslash has already been read.
/// @throws pattern_error  the sequence does not stand for characters, or is unknown
/// @param in_class  true inside a class, where \w excludes six characters, such as U+00B2, that it
///                  includes elsewhere
escape read_escape(pattern_reader& in, bool in_class);

/// Reads a class. Its opening bracket has already been read.
/// @param ignores_case  letters match both cases
/// @throws pattern_error
code_point_set read_class(pattern_reader& in, bool ignores_case, std::size_t depth = 0);

/// Adds all characters that match `point` under (?i).
/// @throws pattern_error  it is not certain which characters these are
void add_cases(const pattern_reader& in, std::uint32_t point, code_point_set& set);

}  // namespace millrace::tokenizer::detail
