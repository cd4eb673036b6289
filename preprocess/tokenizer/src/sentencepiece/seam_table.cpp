// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/seam_table.hpp"

#include <algorithm>
#include <bit>

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
  // With too few bits, too many seams are missed. With more bits than this, the table would not fit
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

}  // namespace millrace::tokenizer::detail
