// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/seam_table.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

template <class Visit>
void for_each_pair(std::span<const std::string_view> pieces, Visit visit) {
  for (const std::string_view piece : pieces) {
    code_point left = code_point_at(piece, 0);
    for (std::size_t at = left.size_bytes; at < piece.size();) {
      const code_point right = code_point_at(piece, at);
      visit(left.value, right.value);
      left = right;
      at += right.size_bytes;
    }
  }
}

}  // namespace

seam_table::seam_table(std::span<const std::string_view> pieces) {
  std::size_t pairs = 0;
  for_each_pair(pieces, [&](auto, auto) { ++pairs; });
  // With too few bits, too many seams are missed. With more than 2^20 bits, the table would not fit
  // in the L2 cache. (A seam is a place where a text can be cut without changing its ids.)
  const std::size_t bits = std::bit_ceil(std::clamp<std::size_t>(4 * pairs, 1 << 12, 1 << 20));
  bits_.assign(bits / 64, 0);
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(bits));
  for_each_pair(pieces, [&](std::uint32_t x, std::uint32_t y) {
    if ((x | y) < 0x80) {
      ascii_[x][y / 64] |= std::uint64_t{1} << (y % 64);
    } else {
      const std::uint64_t h = hash(x, y) >> shift_;
      bits_[h / 64] |= std::uint64_t{1} << (h % 64);
    }
    if (y == ' ' && x != ' ') always_parts_before_space_ = false;
  });
}

std::size_t seam_table::fragment_end(std::string_view text, std::size_t begin) const noexcept {
  code_point left = code_point_at(text, begin);
  std::size_t at = begin + left.size_bytes;
  while (at < text.size()) {
    const code_point right = code_point_at(text, at);
    if (!joined(left.value, right.value)) break;
    left = right;
    at += right.size_bytes;
  }
  return at;
}

namespace {

using character_set = ascii_seams::characters;

bool has(const character_set& set, std::size_t c) {
  return (set[c / 64] >> (c % 64) & 1) != 0;
}

// Rough classes of characters by their frequency in texts.
constexpr character_set ascii_letters = {0, 0x07FFFFFE07FFFFFE};
// digits, space, line feed, " ( ) , - . /
constexpr character_set frequent = {0x03FFD30500002600, 0};

std::uint64_t weight(const character_set& set) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < set.size(); ++i) {
    sum +=
        static_cast<std::uint64_t>(std::popcount(set[i]) + 3 * std::popcount(set[i] & frequent[i]) +
                                   7 * std::popcount(set[i] & ascii_letters[i]));
  }
  return sum;
}

struct set_of_seconds {
  character_set members{};
  character_set kept{};  // first characters that must not be cut off from some member
};

// The cost of joining two groups: the weighted number of character pairs between which texts would
// no longer be cut.
std::uint64_t cost(const set_of_seconds& a, const set_of_seconds& b) {
  const character_set only_a = {a.kept[0] & ~b.kept[0], a.kept[1] & ~b.kept[1]};
  const character_set only_b = {b.kept[0] & ~a.kept[0], b.kept[1] & ~a.kept[1]};
  return weight(only_a) * weight(b.members) + weight(only_b) * weight(a.members);
}

void join(set_of_seconds& a, const set_of_seconds& b) {
  for (std::size_t i = 0; i < a.members.size(); ++i) {
    a.members[i] |= b.members[i];
    a.kept[i] |= b.kept[i];
  }
}

}  // namespace

ascii_seams::ascii_seams(std::array<character_set, 128> kept, const character_set& spaces) {
  std::vector<set_of_seconds> groups;
  for (std::size_t c = 0; c < kept.size(); ++c) {
    set_of_seconds one{{}, kept[c]};
    one.members[c / 64] |= std::uint64_t{1} << (c % 64);
    bool taken = false;
    for (set_of_seconds& g : groups) {
      taken = g.kept == one.kept;
      if (taken) join(g, one);
      if (taken) break;
    }
    if (!taken) groups.push_back(one);
  }
  while (groups.size() > max_groups) {
    std::size_t left = 0;
    std::size_t right = 1;
    std::uint64_t lowest = ~std::uint64_t{0};
    for (std::size_t i = 0; i < groups.size(); ++i) {
      for (std::size_t j = i + 1; j < groups.size(); ++j) {
        const std::uint64_t c = cost(groups[i], groups[j]);
        if (c < lowest) {
          lowest = c;
          left = i;
          right = j;
        }
      }
    }
    join(groups[left], groups[right]);
    groups[right] = groups.back();
    groups.pop_back();
  }
  for (std::size_t c = 0; c < kept.size(); ++c) {
    for (std::size_t g = 0; g < groups.size(); ++g) {
      const auto bit = static_cast<std::uint8_t>(1U << g);
      if (has(groups[g].members, c)) group_[c] |= bit;
      if (has(groups[g].kept, c)) before_[c] |= bit;
    }
    if (has(spaces, c)) group_[c] |= space_bit;
  }
}

}  // namespace millrace::tokenizer::detail
