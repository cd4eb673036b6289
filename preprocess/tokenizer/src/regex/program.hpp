// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "regex/pattern_tree.hpp"

namespace millrace::tokenizer::detail {

/// A step of a compiled pattern. `next` is where to go on, where that is not the following step.
struct instruction {
  enum class code : std::uint8_t {
    take,         ///< one character of sets[set]
    take_run,     ///< min to max of them, as `mode` says
    fork,         ///< go on behind this; if that fails, at `next`
    fork_late,    ///< go on at `next`; if that fails, behind this
    go,           ///< to `next`
    mark,         ///< remembers the place in slots[slot]
    leave_empty,  ///< to `next` if nothing was taken since the mark
    atomic,       ///< what follows up to `succeed`, once; then to `next`
    look_ahead,   ///< the same without moving; `negated`
    look_behind,  ///< `min` characters back, the same; if they fail, `set` is the next such step
    succeed,      ///< the end of the pattern, or of one of the three above
    line_begin,
    line_end,
    text_begin,
    text_end,
    text_end_or_last_newline,
    word_edge,
  };
  static constexpr std::size_t no_set = static_cast<std::size_t>(-1);

  code what = code::succeed;
  pattern_node::appetite mode = pattern_node::appetite::greedy;
  bool negated = false;
  std::size_t next = 0;
  std::size_t set = no_set;  ///< of fork: what the way behind it begins with, if that is known
  std::size_t min = 0;
  std::size_t max = 0;
  std::size_t slot = 0;
};

/// Steps for a tree, the first first; succeeds at the end of a match.
struct program {
  std::vector<instruction> steps;
  std::vector<code_point_set> sets;
  std::size_t slot_count = 0;
  std::size_t first_set = instruction::no_set;  ///< what a match begins with, if it is not empty
};

/// @throws pattern_error  it would have too many steps
program compile(pattern_tree tree);

}  // namespace millrace::tokenizer::detail
