// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/piece_merger.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <string>
#include <unordered_map>

#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

constexpr std::size_t short_symbols = 32;
// Links of one huge text are not kept for the ordinary ones that follow it.
constexpr std::size_t kept_symbols = std::size_t{1} << 20;
constexpr std::uint32_t nobody = 0xFFFFFFFF;
constexpr std::int32_t merged_away = 0x7FFFFFFF;

// In the order of SentencePiece's comparison, which tells 0 from -0: the higher, the better.
std::uint32_t order_of(float score) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &score, sizeof bits);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000;
}

bool is_character(std::string_view text) {
  return code_point_at(text, 0).size_bytes == text.size();
}

}  // namespace

piece_merges::piece_merges(std::span<const mergeable_piece> pieces) {
  ascii_.resize(0x80);
  for (std::uint32_t c = 0; c < 0x80; ++c) ascii_[c] = character_base + as_id(c);
  std::int32_t end = 0;
  for (const mergeable_piece& piece : pieces) end = std::max(end, piece.id + 1);
  unused_.resize(static_cast<std::size_t>(end));
  for (const mergeable_piece& piece : pieces) {
    unused_[static_cast<std::size_t>(piece.id)] = piece.unused;
    has_unused_ = has_unused_ || (piece.unused && !is_character(piece.text));
  }
  add_characters(pieces);
  add_merges(pieces);
}

void piece_merges::add_characters(std::span<const mergeable_piece> pieces) {
  pages_.assign(0x1100 * 2, -1);  // bytes that are no UTF-8 may look like up to 0x1FFFFF
  for (const mergeable_piece& piece : pieces) {
    // A character whose piece is unused is as good as one without.
    if (!is_character(piece.text) || piece.unused) continue;
    const std::uint32_t point = code_point_at(piece.text, 0).value;
    if (point < ascii_.size()) {
      ascii_[point] = piece.id;
      continue;
    }
    std::int32_t& page = pages_[point >> 8];
    if (page < 0) {
      page = as_id(static_cast<std::uint32_t>(characters_.size() / 256));
      for (std::uint32_t i = 0; i < 256; ++i) {
        characters_.push_back(character_base + as_id((point & ~0xFFU) + i));
      }
    }
    characters_[static_cast<std::size_t>(page) * 256 + (point & 0xFF)] = piece.id;
  }
}

void piece_merges::add_merges(std::span<const mergeable_piece> pieces) {
  std::unordered_map<std::string_view, std::int32_t> ids;
  ids.reserve(pieces.size());
  std::vector<std::uint32_t> orders;
  for (const mergeable_piece& piece : pieces) {
    ids.emplace(piece.text, piece.id);
    orders.push_back(order_of(piece.score));
  }
  std::ranges::sort(orders, std::greater<>());
  orders.erase(std::unique(orders.begin(), orders.end()), orders.end());

  std::vector<slot> rules;
  for (const mergeable_piece& piece : pieces) {
    const auto place = std::ranges::lower_bound(orders, order_of(piece.score), std::greater<>());
    const auto rank = static_cast<std::uint32_t>(place - orders.begin());
    const auto symbol_of = [&](std::string_view part) -> std::int32_t {
      if (is_character(part)) return symbol(code_point_at(part, 0).value);
      const auto found = ids.find(part);
      return found == ids.end() ? -1 : found->second;
    };
    for (std::size_t at = code_point_at(piece.text, 0).size_bytes; at < piece.text.size();
         at += code_point_at(piece.text, at).size_bytes) {
      const std::int32_t left = symbol_of(piece.text.substr(0, at));
      if (left < 0) continue;
      const std::int32_t right = symbol_of(piece.text.substr(at));
      if (right >= 0) rules.push_back({key(left, right), {rank, piece.id}});
    }
  }
  slots_.assign(std::bit_ceil(2 * rules.size() + 2), {});
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots_.size()));
  for (const slot& rule : rules) {
    std::size_t at = home(rule.pair);
    while (slots_[at].pair != no_pair) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = rule;  // a pair gives one text, and so one piece: it is not there yet
  }
}

std::size_t piece_merger::merge(std::span<std::int32_t> symbols) {
  // Taking unused pieces apart needs to know in what order pairs were looked up, as the heap does.
  if (symbols.size() <= short_symbols && !merges_->has_unused()) return merge_short(symbols);
  return merge_long(symbols);
}

std::size_t piece_merger::merge_short(std::span<std::int32_t> symbols) const noexcept {
  std::array<piece_merges::merge, short_symbols> pairs;  // of each symbol with the one behind it
  std::size_t count = symbols.size();
  for (std::size_t i = 0; i + 1 < count; ++i) pairs[i] = merges_->find(symbols[i], symbols[i + 1]);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == piece_merges::no_rank) break;
    symbols[best] = pairs[best].result;
    --count;
    for (std::size_t i = best + 1; i < count; ++i) symbols[i] = symbols[i + 1];
    for (std::size_t i = best + 1; i + 1 < count; ++i) pairs[i] = pairs[i + 1];
    if (best + 1 < count) pairs[best] = merges_->find(symbols[best], symbols[best + 1]);
    if (best != 0) pairs[best - 1] = merges_->find(symbols[best - 1], symbols[best]);
  }
  return count;
}

void piece_merger::push(std::uint32_t left, std::uint32_t right,
                        std::span<const std::int32_t> symbols) {
  const auto pair = merges_->find(symbols[left], symbols[right]);
  if (pair.rank == piece_merges::no_rank) return;
  open_.push_back(std::uint64_t{pair.rank} << 32 | left);
  if (merges_->has_unused() && merges_->is_unused(pair.result)) {
    parts_[pair.result] = {symbols[left], symbols[right]};
  }
}

std::size_t piece_merger::merge_long(std::span<std::int32_t> symbols) {
  const auto count = static_cast<std::uint32_t>(symbols.size());
  links_.resize(count);
  open_.clear();
  parts_.clear();
  for (std::uint32_t i = 0; i < count; ++i) {
    links_[i] = {i == 0 ? nobody : i - 1, i + 1 == count ? nobody : i + 1};
  }
  for (std::uint32_t i = 0; i + 1 < count; ++i) push(i, i + 1, symbols);
  std::ranges::make_heap(open_, std::greater<>());
  const auto pushed_to_heap = [&](std::uint32_t left, std::uint32_t right) {
    const std::size_t before = open_.size();
    push(left, right, symbols);
    if (open_.size() != before) std::ranges::push_heap(open_, std::greater<>());
  };

  while (!open_.empty()) {
    std::ranges::pop_heap(open_, std::greater<>());
    const auto rank = static_cast<std::uint32_t>(open_.back() >> 32);
    const auto left = static_cast<std::uint32_t>(open_.back());
    open_.pop_back();
    // Out of date: the left one is gone or at its end, or the pair is another one by now. (If it is
    // another one of the same rank, it is in the heap too, and comes at this very place.)
    if (symbols[left] == merged_away || links_[left].after == nobody) continue;
    const std::uint32_t right = links_[left].after;
    const auto pair = merges_->find(symbols[left], symbols[right]);
    if (pair.rank != rank) continue;

    symbols[left] = pair.result;
    symbols[right] = merged_away;
    const std::uint32_t after = links_[right].after;
    links_[left].after = after;
    if (after != nobody) links_[after].before = left;
    if (links_[left].before != nobody) pushed_to_heap(links_[left].before, left);
    if (after != nobody) pushed_to_heap(left, after);
  }

  const auto rest = std::remove(symbols.begin(), symbols.end(), merged_away);
  if (count > kept_symbols) {
    links_ = {};
    open_ = {};
  }
  return static_cast<std::size_t>(rest - symbols.begin());
}

}  // namespace millrace::tokenizer::detail
