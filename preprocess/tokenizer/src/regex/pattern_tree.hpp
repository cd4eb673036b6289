// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <millrace/error.hpp>

#include "unicode/code_point_set.hpp"

namespace millrace::tokenizer::detail {

/// A regular expression that cannot be honoured, or is none.
class pattern_error : public error {
 public:
  explicit pattern_error(const std::string& problem) : error(problem) {}  ///< of the whole
  /// @param offset  in the pattern, in bytes
  pattern_error(std::size_t offset, const std::string& problem)
      : error(problem + " (at byte " + std::to_string(offset) + " of the regular expression)") {}
};

/// A node of a regular expression.
struct pattern_node {
  enum class kind : std::uint8_t {
    nothing,      ///< matches the empty text
    characters,   ///< one character of sets[set]
    sequence,     ///< children, one after another
    alternation,  ///< the first of the children that leads to a match
    repeat,       ///< the child, `min` to `max` times
    atomic,       ///< the first match of the child, and no other
    look_ahead,   ///< what follows matches the child, or, if negated, does not
    look_behind,  ///< the same of what lies before; children are of fixed length each
    line_begin,   ///< sets[set] is the newline, here and below
    line_end,
    text_begin,
    text_end,
    text_end_or_last_newline,
    word_edge,  ///< between a character of sets[set] and another, or, if negated, not there
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

/// Number of characters that `node` matches, the same for every match.
struct fixed_length {
  bool is_fixed;
  std::size_t count;
};
fixed_length length_of(const pattern_node& node);

/// Whether `node` may match the empty text.
bool may_be_empty(const pattern_node& node);

}  // namespace millrace::tokenizer::detail
