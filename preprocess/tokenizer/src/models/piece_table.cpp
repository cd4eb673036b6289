// SPDX-License-Identifier: Apache-2.0
#include "models/piece_table.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <cstring>

namespace millrace::tokenizer::detail {
namespace {

// Entry n is a mask for the first n of the 8 bytes of a number.
constexpr std::array<std::uint64_t, 9> first_of_eight = [] {
  std::array<std::uint64_t, 9> masks{};
  for (std::size_t n = 1; n < masks.size(); ++n) masks[n] = ~std::uint64_t{0} >> (64 - 8 * n);
  return masks;
}();

}  // namespace

piece_table::piece_table(std::size_t count)
    : slots_(std::bit_ceil(count + count / 2 + 2)),
      shift_(64 - std::countr_zero(slots_.size())),
      short_lengths_(std::size_t{2} * 256),
      lengths_(std::size_t{1} << first_bits) {}

inline piece_table::slot piece_table::key_of(const char* text, std::size_t size,
                                             bool continues) noexcept {
  slot key;
  std::memcpy(&key.low, text, 8);
  std::memcpy(&key.high, text + 8, 8);
  key.low &= first_of_eight[std::min<std::size_t>(size, 8)];
  key.high &= first_of_eight[std::max<std::size_t>(size, 8) - 8];
  key.high |= std::uint64_t{size << 1 | (continues ? 1U : 0U)} << 56;
  return key;
}

inline std::size_t piece_table::home(const slot& key) const noexcept {
  std::uint64_t mixed = key.low * 0x9E3779B97F4A7C15U ^ key.high * 0xC2B2AE3D27D4EB4FU;
  mixed ^= mixed >> 32;
  return mixed * 0xD6E8FEB86659FD93U >> shift_;
}

inline std::size_t piece_table::place_of_first(const char* text, bool continues) noexcept {
  std::uint32_t first = 0;
  std::memcpy(&first, text, first_bytes);
  return (std::uint64_t{first} << 1 | (continues ? 1U : 0U)) * 0x9E3779B97F4A7C15U >>
         (64 - first_bits);
}

void piece_table::add(std::string_view piece, bool continues, std::int32_t id) {
  assert(!piece.empty() && id >= 0 && id <= max_id);
  const auto bit = static_cast<std::uint16_t>(1U << std::min(piece.size(), longer));
  if (piece.size() < first_bytes) {
    short_lengths_[(continues ? 256U : 0U) | static_cast<unsigned char>(piece[0])] |= bit;
  } else {
    lengths_[place_of_first(piece.data(), continues)] |= bit;
  }
  if (piece.size() > most_bytes) return longer_[continues ? 1 : 0].add(piece, id);
  std::array<char, read_bytes> text{};
  std::ranges::copy(piece, text.begin());
  slot key = key_of(text.data(), piece.size(), continues);
  std::size_t at = home(key);
  while (slots_[at].high != 0) at = (at + 1) & (slots_.size() - 1);
  key.high |= std::uint64_t{static_cast<std::uint32_t>(id)} << 32;
  slots_[at] = key;
}

piece_table::match piece_table::longest(std::string_view text, bool continues) const noexcept {
  unsigned lengths =
      short_lengths_[(continues ? 256U : 0U) | static_cast<unsigned char>(text.front())];
  if (text.size() >= first_bytes) lengths |= lengths_[place_of_first(text.data(), continues)];
  lengths &= (2U << std::min(text.size(), longer)) - 1;
  if (lengths >> longer != 0) {
    const token_trie& trie = longer_[continues ? 1 : 0];
    match found;
    token_trie::node node = token_trie::root;
    for (std::size_t at = 0; at < text.size();) {
      node = trie.next(node, static_cast<unsigned char>(text[at++]));
      if (node == token_trie::nowhere) break;
      if (trie.token(node) != token_trie::none) found = {trie.token(node), at};
    }
    if (found.id != none) return found;
    lengths ^= 1U << longer;
  }
  for (unsigned left = lengths & (lengths - 1); left != 0; left &= left - 1) {
    const auto size = static_cast<std::size_t>(std::countr_zero(left));
    __builtin_prefetch(&slots_[home(key_of(text.data(), size, continues))]);
  }
  while (lengths != 0) {
    const auto size = static_cast<std::size_t>(std::bit_width(lengths) - 1);
    lengths ^= 1U << size;
    const slot key = key_of(text.data(), size, continues);
    for (std::size_t at = home(key); slots_[at].high != 0; at = (at + 1) & (slots_.size() - 1)) {
      const slot& s = slots_[at];
      if (((s.low ^ key.low) | ((s.high & ~id_bits) ^ key.high)) != 0) continue;
      return {static_cast<std::int32_t>((s.high & id_bits) >> 32), size};
    }
  }
  return {};
}

}  // namespace millrace::tokenizer::detail
