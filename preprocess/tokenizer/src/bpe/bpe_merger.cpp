// SPDX-License-Identifier: Apache-2.0
#include "bpe/bpe_merger.hpp"

#include <algorithm>
#include <array>
#include <functional>

namespace millrace::tokenizer::detail {
namespace {

// Up to this many symbols, scanning all ranks for each merge is faster than the heap. Nearly every
// pretoken (a word that is merged separately) of a real text has far fewer symbols.
constexpr std::size_t short_size = 96;

// If a huge pretoken needs scratch memory for more symbols than this, merge() frees the memory
// afterwards. Ordinary pretokens need less.
constexpr std::size_t kept_links = std::size_t{1} << 20;

constexpr std::uint32_t nobody = 0xFFFFFFFF;
constexpr std::int32_t merged_away = -1;

}  // namespace

std::size_t bpe_merger::merge(std::span<std::int32_t> symbols) {
  if (symbols.size() < 2) return symbols.size();
  return symbols.size() <= short_size ? merge_short(symbols) : merge_long(symbols);
}

std::size_t bpe_merger::merge_short(std::span<std::int32_t> symbols) const noexcept {
  std::size_t count = symbols.size();
  std::array<merge_table::merge, short_size> pairs;  // pairs[i]: the merge of symbols i and i + 1
  for (std::size_t i = 0; i + 1 < count; ++i) {
    pairs[i] = merges_->find(symbols[i], symbols[i + 1]);
  }
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (pairs[i].rank < pairs[best].rank) best = i;
    }
    if (pairs[best].rank == merge_table::no_rank) break;
    symbols[best] = pairs[best].result;
    std::copy(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 2,
              symbols.begin() + static_cast<std::ptrdiff_t>(count),
              symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    std::copy(pairs.begin() + best + 1, pairs.begin() + count - 1, pairs.begin() + best);
    --count;
    if (best > 0) pairs[best - 1] = merges_->find(symbols[best - 1], symbols[best]);
    if (best + 1 < count) pairs[best] = merges_->find(symbols[best], symbols[best + 1]);
  }
  return count;
}

void bpe_merger::push(std::uint32_t left, std::uint32_t right,
                      std::span<const std::int32_t> symbols) {
  const auto pair = merges_->find(symbols[left], symbols[right]);
  if (pair.rank != merge_table::no_rank) open_.push_back(std::uint64_t{pair.rank} << 32 | left);
}

std::size_t bpe_merger::merge_long(std::span<std::int32_t> symbols) {
  const auto count = static_cast<std::uint32_t>(symbols.size());
  links_.resize(count);
  open_.clear();
  for (std::uint32_t i = 0; i < count; ++i) links_[i] = {i - 1, i + 1};
  links_.front().before = nobody;
  links_.back().after = nobody;
  for (std::uint32_t i = 0; i + 1 < count; ++i) push(i, i + 1, symbols);
  std::make_heap(open_.begin(), open_.end(), std::greater<>());
  const auto pushed_to_heap = [&](std::uint32_t left, std::uint32_t right) {
    const std::size_t before = open_.size();
    push(left, right, symbols);
    if (open_.size() != before) std::push_heap(open_.begin(), open_.end(), std::greater<>());
  };

  while (!open_.empty()) {
    std::pop_heap(open_.begin(), open_.end(), std::greater<>());
    const auto left = static_cast<std::uint32_t>(open_.back());
    const auto rank = static_cast<std::uint32_t>(open_.back() >> 32);
    open_.pop_back();
    // Skip a stale entry: at least one of its two symbols has already merged with another symbol.
    if (symbols[left] == merged_away) continue;
    const std::uint32_t right = links_[left].after;
    if (right == nobody) continue;
    const auto pair = merges_->find(symbols[left], symbols[right]);
    if (pair.rank != rank) continue;

    symbols[left] = pair.result;
    symbols[right] = merged_away;
    const std::uint32_t after = links_[right].after;
    links_[left].after = after;
    if (after != nobody) {
      links_[after].before = left;
      pushed_to_heap(left, after);
    }
    if (links_[left].before != nobody) pushed_to_heap(links_[left].before, left);
  }

  const auto rest = std::remove(symbols.begin(), symbols.end(), merged_away);
  if (count > kept_links) {
    links_ = {};
    open_ = {};
  }
  return static_cast<std::size_t>(rest - symbols.begin());
}

}  // namespace millrace::tokenizer::detail
