// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "pre_tokenize/pre_tokenizer.hpp"

namespace millrace::tokenizer::detail {

/// How the matches of a pattern are treated, with the names of tokenizer.json. The examples show
/// the pieces of "the-final--countdown" if `-` is the pattern.
enum class split_behavior : std::uint8_t {
  removed,               ///< the, final, countdown
  isolated,              ///< the, -, final, -, -, countdown
  merged_with_previous,  ///< the-, final-, -, countdown
  merged_with_next,      ///< the, -final, -, -countdown
  contiguous,            ///< the, -, final, --, countdown
};

/// The behavior that a file calls `name`, e.g. "MergedWithNext".
std::optional<split_behavior> split_behavior_of(std::string_view name) noexcept;

/// A part of a text: a match of a pattern, or the text between two matches. May be empty.
struct stretch {
  std::size_t begin;
  std::size_t end;
  bool matches;
};

/// Appends the pieces of `text` to `out`.
///
/// @param stretches  all matches in `text` and the text between them, in order; overwritten
void append_pieces(std::string_view text, std::vector<stretch>& stretches, split_behavior behavior,
                   piece_list& out);
class place_list;
void append_pieces(std::string_view text, std::vector<stretch>& stretches, split_behavior behavior,
                   place_list& out);

}  // namespace millrace::tokenizer::detail
