// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "split/walk.hpp"

namespace millrace::tokenizer::detail {

/// Code for patterns in which each cut depends on only three characters, regardless of the length
/// of the pretoken. Given the kinds of three adjacent characters `a`, `b` and `c`,
/// Group::cuts_between returns whether there is a cut between `a` and `b`. `c` matters only if
/// Group::joins(b) is true: then `b` may belong to the same pretoken as `c`, as a space belongs to
/// the word after it.

/// Returns the end of the pretoken that begins at `begin`. Same contract as r50k_group::end.
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

/// Like is_certain_cut, for the pattern of the group.
template <class Group>
bool is_certain_local_cut(std::uint32_t left, std::uint32_t right) noexcept {
  const unsigned before = Group::kinds(left);
  // If `left` may join the pretoken of `right`, cutting here would change the result.
  return !Group::joins(before) && Group::cuts_between(before, Group::kinds(right), 0);
}

}  // namespace millrace::tokenizer::detail
