// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/seam_table.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

constexpr std::size_t block_bytes = 64;

// Bit i: byte i of the block is `wanted`.
std::uint64_t places_of(char wanted, const char* block) noexcept {
  std::uint64_t mask = 0;
#ifdef __SSE2__
  const __m128i all = _mm_set1_epi8(wanted);
  for (unsigned i = 0; i < 4; ++i) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + 16 * i));
    const auto bits = static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, all)));
    mask |= std::uint64_t{bits} << 16 * i;
  }
#else
  for (unsigned i = 0; i < block_bytes; ++i) mask |= std::uint64_t{block[i] == wanted} << i;
#endif
  return mask;
}

template <class Visit>
void for_each_pair(std::span<const std::string_view> pieces, Visit visit) {
  for (const std::string_view piece : pieces) {
    code_point left = code_point_at(piece, 0);
    for (std::size_t at = left.size_bytes; at < piece.size();) {
      const code_point right = code_point_at(piece, at);
      visit(left.value, right.value, piece[at - 1]);
      left = right;
      at += right.size_bytes;
    }
  }
}

}  // namespace

seam_table::seam_table(std::span<const std::string_view> pieces) {
  std::size_t pairs = 0;
  for_each_pair(pieces, [&](auto, auto, char) { ++pairs; });
  // Sparse enough that seams are seldom missed, small enough for a cache near the core.
  const std::size_t bits = std::bit_ceil(std::clamp<std::size_t>(4 * pairs, 1 << 12, 1 << 20));
  bits_.assign(bits / 64, 0);
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(bits));
  for_each_pair(pieces, [&](std::uint32_t x, std::uint32_t y, char before) {
    if ((x | y) < 0x80) {
      ascii_[x][y / 64] |= std::uint64_t{1} << (y % 64);
    } else {
      const std::uint64_t h = hash(x, y) >> shift_;
      bits_[h / 64] |= std::uint64_t{1} << (h % 64);
    }
    if (y == ' ' && x != ' ') {
      parts_before_space_[static_cast<unsigned char>(before)] = false;
      always_parts_before_space_ = false;
    }
    if ((x == '\n') != (y == '\n')) parts_around_line_feeds_ = false;
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

std::size_t next_word_ends(const seam_table& seams, std::string_view text, std::size_t begin,
                           std::span<std::size_t> ends) noexcept {
  const bool always = seams.always_parts_before_space();
  const bool line_feeds = seams.parts_around_line_feeds();
  if (begin >= text.size()) return 0;
  std::size_t count = 0;
  // The word at `begin` has its own spaces, or line feeds, in front.
  std::uint64_t after_space = 1;
  std::uint64_t after_line_feed = line_feeds && text[begin] == '\n' ? 1 : 0;
  for (std::size_t at = begin; at < text.size(); at += block_bytes) {
    const std::size_t left = text.size() - at;
    const char* block = text.data() + at;
    char rest[block_bytes];
    if (left < block_bytes) {
      std::memset(rest, 0, block_bytes);
      std::memcpy(rest, block, left);
      block = rest;
    }
    const std::uint64_t spaces = places_of(' ', block);
    std::uint64_t starts = spaces & ~(spaces << 1 | after_space);
    after_space = spaces >> 63;
    if (line_feeds) {
      const std::uint64_t feeds = places_of('\n', block);
      starts |= feeds ^ (feeds << 1 | after_line_feed);
      after_line_feed = feeds >> 63;
      if (left < block_bytes) starts &= ~(~std::uint64_t{0} << left);
    }
    for (; starts != 0; starts &= starts - 1) {
      const std::size_t start = at + static_cast<std::size_t>(std::countr_zero(starts));
      if (!always && text[start] == ' ' &&
          !seams.parts_before_space(static_cast<unsigned char>(text[start - 1]))) {
        continue;
      }
      ends[count++] = start;
      if (count == ends.size()) return count;
    }
  }
  ends[count++] = text.size();
  return count;
}

}  // namespace millrace::tokenizer::detail
