// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "split/walk.hpp"

namespace millrace::tokenizer::detail {

/// What the patterns share whose cuts depend on three characters alone, however long the pretoken:
/// whether one is between `a` and `b`, where `c` follows, is Group::cuts_between of their kinds.
/// `c` counts only if `b` may go with it, as a space does with a word: Group::joins(b).

/// As r50k_group::end.
template <class Group>
std::size_t local_end(std::string_view text, std::size_t begin) noexcept {
  const walked_char first = char_at<Group>(text, begin);
  unsigned a = first.kinds;
  for (std::size_t at = begin + first.size_bytes; at < text.size();) {
    const walked_char b = char_at<Group>(text, at);
    const std::size_t next = at + b.size_bytes;
    const unsigned c = next < text.size() ? char_at<Group>(text, next).kinds : 0U;
    if (Group::cuts_between(a, b.kinds, c)) return at;
    a = b.kinds;
    at = next;
  }
  return text.size();
}

/// As is_certain_cut, by the pattern of the group.
template <class Group>
bool is_certain_local_cut(std::uint32_t left, std::uint32_t right) noexcept {
  const unsigned before = Group::kinds(left);
  // What may go with the right one has to see it.
  return !Group::joins(before) && Group::cuts_between(before, Group::kinds(right), 0);
}

}  // namespace millrace::tokenizer::detail
