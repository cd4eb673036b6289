// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>

#include "unicode/code_point_set.hpp"

namespace millrace::tokenizer::detail {

/// Thrown for a regular expression that is invalid or not supported.
class pattern_error : public error {
 public:
  /// For a problem that has no position in the pattern.
  explicit pattern_error(const std::string& problem) : error(problem) {}
  /// @param offset  position of the problem in the pattern, in bytes
  pattern_error(std::size_t offset, const std::string& problem)
      : error(problem + " (at byte " + std::to_string(offset) + " of the regular expression)") {}
};

/// A node of a regular expression.
struct pattern_node {
  enum class kind : std::uint8_t {
    nothing,      ///< matches the empty string
    characters,   ///< one character of sets[set]
    sequence,     ///< children, one after another
    alternation,  ///< the first child that leads to a match
    repeat,       ///< the child, `min` to `max` times
    atomic,       ///< the first match of the child, without backtracking
    look_ahead,   ///< the text after this place matches the child; negated: does not match
    look_behind,  ///< the same for the text before this place; each child has a fixed length
    line_begin,   ///< sets[set] is the newline, as for line_end and text_end_or_last_newline
    line_end,
    text_begin,
    text_end,
    text_end_or_last_newline,
    word_edge,  ///< between a character in sets[set] and one outside; negated: anywhere else
  };
  enum class appetite : std::uint8_t { greedy, lazy, possessive };
  static constexpr std::size_t unbounded = std::numeric_limits<std::size_t>::max();

  kind what = kind::nothing;
  std::size_t set = 0;
  std::size_t min = 0;
  std::size_t max = 0;
  appetite mode = appetite::greedy;
  bool negated = false;
  std::vector<pattern_node> children;
};

struct pattern_tree {
  pattern_node root;
  std::vector<code_point_set> sets;  ///< no two are equal
};

/// The number of characters that `node` matches. `count` is valid only if `is_fixed` is true: all
/// matches then have the same length.
struct fixed_length {
  bool is_fixed;
  std::size_t count;
};
fixed_length length_of(const pattern_node& node);

/// True if `node` may match the empty string.
bool may_be_empty(const pattern_node& node);

/// Parses a regular expression as Oniguruma 6.9.10 does, in the syntax that Hugging Face's
/// tokenizers use. `^` and `$` match at line boundaries. `.` matches a newline only under (?m). \s,
/// \d, \w and properties use Unicode 16. In `x{1,3}+`, the `+` repeats `x{1,3}`.
///
/// Rejects everything that might differ from Oniguruma: back references, \X, \R, \K, \G, absent
/// groups, conditions, look-behind of variable length, and stacked quantifiers. Under (?i), also
/// rejects letters whose case forms are not ASCII. The exceptions are k (Kelvin sign) and s (long
/// s).
///
/// @param pattern  valid UTF-8
/// @throws pattern_error
pattern_tree parse_pattern(std::string_view pattern);

}  // namespace millrace::tokenizer::detail
