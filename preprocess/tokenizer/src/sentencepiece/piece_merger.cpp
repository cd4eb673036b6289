// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/piece_merger.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>

#include <millrace/error.hpp>
#include <millrace/formats/detail/free_memory.hpp>

#include "text/token_index.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

// If a huge text needs scratch memory for more links than this, merge() frees the memory
// afterwards.
constexpr std::size_t kept_text_links = std::size_t{1} << 20;
constexpr std::uint32_t nobody = 0xFFFFFFFF;
constexpr piece_merges::symbol merged_away = 0xFFFFFFFF;

// Maps scores to integers with the same order as in SentencePiece, where -0 is below 0.
std::uint32_t order_of(float score) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, &score, sizeof bits);
  return (bits >> 31) != 0 ? ~bits : bits | 0x80000000;
}

bool is_character(std::string_view text) {
  return code_point_at(text, 0).size_bytes == text.size();
}

}  // namespace

piece_merges::piece_merges(const std::vector<text_piece>& pieces)
    : pages_(0x2000, -1) {  // bytes that are not UTF-8 may decode to up to 0x1FFFFF
  ascii_.fill(unknown);
  std::vector<const text_piece*> merging;
  for (const text_piece& piece : pieces) {
    if (piece.type != piece_type::user_defined && !is_character(piece.text)) {
      merging.push_back(&piece);
    }
  }
  // Sort by descending score, so that the order of symbols is the order of ranks.
  std::ranges::stable_sort(merging, [](const text_piece* a, const text_piece* b) {
    return order_of(a->score) > order_of(b->score);
  });
  add_merging(merging);
  for (const text_piece& piece : pieces) {
    if (piece.type == piece_type::user_defined) {
      // A user-defined piece is found before any merge and never merges.
      user_defined_.emplace(piece.id, add(piece.id, piece.text.size()));
    } else if (is_character(piece.text)) {
      // A character whose piece is unused is treated like a character without a piece.
      add_character(code_point_at(piece.text, 0).value,
                    piece.type == piece_type::unused ? -1 : piece.id, piece.text.size());
    }
  }
  for (const text_piece* piece : merging) {
    for (std::size_t at = 0; at < piece->text.size();) {
      const code_point c = code_point_at(piece->text, at);
      if (of_character(c.value) == unknown) add_character(c.value, -1, c.size_bytes);
      at += c.size_bytes;
    }
  }
  add_rules(rules_of(merging));
  const auto is_run = [](const text_piece* piece) {
    return piece->text.find_first_not_of(' ') == std::string_view::npos;
  };
  const auto late = merging.begin() + std::min<std::ptrdiff_t>(first_tied(), std::ssize(merging));
  spaces_merge_last_ = pairs() != nullptr && std::all_of(late, merging.end(), is_run) &&
                       std::all_of(merging.begin(), late, [](const text_piece* piece) {
                         return piece->text.find("  ") == std::string_view::npos;
                       });
}

piece_merges::symbol piece_merges::first_tied() const noexcept {
  symbol first = 0;
  while (first < ranks_.size() && ranks_[first] == first) ++first;
  // The piece before it is tied too.
  return first < ranks_.size() ? first - 1 : first;
}

piece_merges::symbol piece_merges::add(std::int32_t id, std::size_t size_bytes) {
  if (ids_.size() == unknown) {
    throw config_error("a BPE model of more than " + std::to_string(unknown) + " symbols");
  }
  ids_.push_back(id);
  sizes_.push_back(static_cast<std::uint16_t>(size_bytes));  // a piece has fewer than 8000 bytes
  return static_cast<symbol>(ids_.size() - 1);
}

void piece_merges::add_merging(std::vector<const text_piece*> pieces) {
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    add(pieces[i]->id, pieces[i]->text.size());
    const bool again = i != 0 && order_of(pieces[i]->score) == order_of(pieces[i - 1]->score);
    ranks_.push_back(again ? ranks_.back() : static_cast<std::uint32_t>(i));
    unused_.push_back(pieces[i]->type == piece_type::unused);
    has_unused_ = has_unused_ || unused_.back();
  }
}

void piece_merges::add_character(std::uint32_t character, std::int32_t id, std::size_t size_bytes) {
  const symbol s = add(id, size_bytes);
  if (character < ascii_.size()) {
    ascii_[character] = s;
    return;
  }
  std::int32_t& page = pages_[character >> 8];
  if (page < 0) {
    page = static_cast<std::int32_t>(characters_.size() / 256);
    characters_.resize(characters_.size() + 256, unknown);
  }
  characters_[static_cast<std::size_t>(page) * 256 + (character & 0xFF)] = s;
}

std::vector<std::uint64_t> piece_merges::rules_of(
    const std::vector<const text_piece*>& merging) const {
  token_index symbols(merging.size());
  for (std::size_t i = 0; i < merging.size(); ++i) {
    symbols.add(merging[i]->text, static_cast<std::int32_t>(i));
  }
  const auto symbol_of = [&](std::string_view part) {
    if (is_character(part)) return of_character(code_point_at(part, 0).value);
    const std::int32_t found = symbols.find(part);
    return found == token_index::none ? none : static_cast<symbol>(found);
  };
  std::vector<std::uint64_t> rules;
  for (std::size_t i = 0; i < merging.size(); ++i) {
    const std::string_view text = merging[i]->text;
    for (std::size_t at = code_point_at(text, 0).size_bytes; at < text.size();
         at += code_point_at(text, at).size_bytes) {
      const symbol left = symbol_of(text.substr(0, at));
      if (left == none) continue;
      const symbol right = symbol_of(text.substr(at));
      if (right == none) continue;
      rules.push_back(key(left, right) << symbol_bits | i);
    }
  }
  return rules;
}

void piece_merges::add_rules(std::span<const std::uint64_t> rules) {
  slots_.assign(std::bit_ceil(2 * rules.size() + 2 * bucket_slots), no_slot);
  shift_ = 64 - static_cast<unsigned>(std::countr_zero(slots_.size() / bucket_slots));
  const std::size_t filter_bits = std::bit_ceil(8 * rules.size() + 64);
  filter_.assign(filter_bits / 64, 0);
  filter_shift_ = 64 - static_cast<unsigned>(std::countr_zero(filter_bits));
  if (ids_.size() < pair_table::max_id && !has_unused_) add_pairs(rules, first_tied());
  for (const std::uint64_t rule : rules) {
    const std::uint64_t mixed = mix(rule >> symbol_bits);
    filter_[mixed >> filter_shift_ >> 6] |= std::uint64_t{1} << (mixed >> filter_shift_ & 63);
    std::size_t at = home(mixed);
    while (slots_[at] != no_slot) at = (at + 1) & (slots_.size() - 1);
    slots_[at] = rule;  // no pair occurs twice, because its joined text is one piece
  }
}

void piece_merges::add_pairs(std::span<const std::uint64_t> rules, symbol first_tied) {
  std::array<std::int32_t, 256> byte_ids;
  byte_ids.fill(-1);
  for (std::size_t c = 0; c < ascii_.size(); ++c) {
    byte_ids[c] = static_cast<std::int32_t>(std::min(ascii_[c], unknown_in_pairs()));
  }
  pairs_.emplace(rules.size(), byte_ids);
  late_.assign(ids_.size(), {});
  for (const std::uint64_t rule : rules) {
    const std::uint64_t pair = rule >> symbol_bits;
    const auto left = static_cast<symbol>(pair >> symbol_bits);
    const auto right = static_cast<symbol>(pair & none);
    const auto result = static_cast<symbol>(rule & none);
    if (result < first_tied) {
      pairs_->add({static_cast<std::int32_t>(left), static_cast<std::int32_t>(right),
                   static_cast<std::int32_t>(result)});
    } else {
      late_[left].left = true;
      late_[right].right = true;
    }
  }
}

std::size_t piece_merger::merge(std::span<symbol> symbols) {
  // How unused pieces are split again depends on the order of pair look-ups. Only merge_long(),
  // which uses a heap, has the order of SentencePiece.
  if (merges_->has_unused()) return merge_long(symbols);
  if (symbols.size() > part_symbols) return merge_in_parts(symbols);
  if (symbols.size() > short_word::max_bytes) return merge_long(symbols);
  if (!merges_together()) return merge_few(symbols);
  short_word word;
  start_symbols(symbols, word);
  merge_together({&word, 1});
  std::copy_n(word.symbols, word.count, symbols.begin());
  return word.count;
}

void piece_merger::start_symbols(std::span<const symbol> symbols, short_word& word) const noexcept {
  const pair_table& pairs = *merges_->pairs();
  const auto in_pairs = [&](symbol s) { return std::min(s, merges_->unknown_in_pairs()); };
  word.start(symbols.size());
  for (std::size_t i = 0; i < symbols.size(); ++i) {
    const symbol left = in_pairs(symbols[i]);
    word.set(
        i, left,
        i + 1 < symbols.size() ? pairs.find(left, in_pairs(symbols[i + 1])) : pair_table::none);
  }
}

bool piece_merger::start(std::string_view text, short_word& word) const noexcept {
  if (text.size() <= short_word::max_bytes && start_word(*merges_->pairs(), text, word)) {
    return true;
  }
  std::array<symbol, short_word::max_bytes> symbols;
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size(); ++count) {
    if (count == symbols.size()) return false;
    const code_point c = code_point_at(text, at);
    symbols[count] = merges_->of_character(c.value);
    at += c.size_bytes;
  }
  start_symbols(std::span(symbols).first(count), word);
  return true;
}

void piece_merger::merge_together(std::span<short_word> words) const noexcept {
  merge_short(*merges_->pairs(), words, set_);
  for (short_word& word : words) {
    for (symbol& s : std::span(word.symbols, word.count)) {
      if (s == merges_->unknown_in_pairs()) s = piece_merges::unknown;
    }
    const std::span<symbol> symbols(word.symbols, word.count);
    if (merges_->merge_late(symbols)) word.count = merge_few(symbols);
  }
}

std::size_t piece_merger::merge_few(std::span<symbol> symbols) const noexcept {
  // pairs[i] is the merge result of symbols i and i + 1, and ranks[i] is the rank of that merge.
  std::array<symbol, short_word::max_bytes> pairs;
  std::array<std::uint32_t, short_word::max_bytes> ranks;
  std::size_t count = symbols.size();
  if (count < 2) return count;
  const auto look_up = [&](std::size_t i) {
    pairs[i] = merges_->find(symbols[i], symbols[i + 1]);
    ranks[i] = merges_->rank(pairs[i]);
  };
  for (std::size_t i = 0; i + 1 < count; ++i) look_up(i);
  while (count > 1) {
    std::size_t best = 0;
    std::uint32_t lowest = ranks[0];
    for (std::size_t i = 1; i + 1 < count; ++i) {
      best = ranks[i] < lowest ? i : best;
      lowest = std::min(ranks[i], lowest);
    }
    if (lowest == piece_merges::no_rank) break;
    symbols[best] = pairs[best];
    --count;
    for (std::size_t i = best + 1; i < count; ++i) {
      symbols[i] = symbols[i + 1];
      pairs[i] = pairs[i + 1];  // the last pair is not read
      ranks[i] = ranks[i + 1];
    }
    if (best != 0) merges_->prefetch(symbols[best - 1], symbols[best]);
    if (best + 1 < count) look_up(best);
    if (best != 0) look_up(best - 1);
  }
  return count;
}

void piece_merger::push(std::uint32_t left, std::uint32_t right, std::span<const symbol> symbols) {
  const symbol merged = merges_->find(symbols[left], symbols[right]);
  if (merged == piece_merges::none) return;
  open_.push_back(std::uint64_t{merges_->rank(merged)} << 32 | left);
  if (merges_->has_unused() && merges_->is_unused(merged)) {
    parts_[merged] = {symbols[left], symbols[right]};
  }
}

// Merges a long text one part at a time, as byte_merger::append does. Both rely on this fact: a
// sequence of symbols is the merge result of its text if, for each pair of adjacent symbols, the
// text of the pair alone merges to that pair. The fact also holds with ties: among equal merges,
// the leftmost comes first in a part just as in the whole text.
std::size_t piece_merger::merge_in_parts(std::span<symbol> symbols) {
  done_.clear();
  std::size_t wanted = part_symbols;
  std::size_t furthest = 0;  // end of the furthest part so far
  const auto drop_last = [&] {
    const std::size_t begin = done_.back().begin;
    done_.pop_back();
    return begin;
  };
  for (std::size_t at = 0;;) {
    const std::size_t end = std::min(symbols.size(), at + wanted);
    furthest = std::max(furthest, end);
    find_part(symbols, at, end);
    const std::size_t first_end = part_.size() > 1 ? part_[1].begin : end;
    if (!done_.empty() && !follows(symbols, done_.back().begin, at, first_end)) {
      // Drop the last few symbols. Each further failure drops more symbols, until all are dropped.
      const std::size_t back = std::min(done_.size(), wanted / part_symbols * 8);
      for (std::size_t i = 0; i < back; ++i) at = drop_last();
      wanted = 2 * std::max(wanted, furthest - at);  // past all failed parts, so that the loop ends
      continue;
    }
    done_.insert(done_.end(), part_.begin(), part_.end());
    at = end;
    if (at == symbols.size()) break;
    wanted = part_symbols;
    // Drop the last few symbols, because the text after this part may merge with them.
    const std::size_t dropped = std::min<std::size_t>(4, part_.size() / 4);
    for (std::size_t i = 0; i < dropped; ++i) at = drop_last();
  }
  std::ranges::transform(done_, symbols.begin(), &placed_symbol::merged);
  const std::size_t count = done_.size();
  if (done_.capacity() > kept_text_links) formats::free_memory(done_);
  return count;
}

void piece_merger::find_part(std::span<const symbol> symbols, std::size_t begin, std::size_t end) {
  scratch_.assign(symbols.begin() + static_cast<std::ptrdiff_t>(begin),
                  symbols.begin() + static_cast<std::ptrdiff_t>(end));
  merge_in_place(scratch_);
  part_.clear();
  for (std::size_t i = 0; i < scratch_.size(); ++i) {
    if (scratch_[i] == merged_away) continue;
    part_.push_back({scratch_[i], static_cast<std::uint32_t>(begin + i)});
  }
}

// True if merging the symbols from `left` to `end` gives exactly two symbols, the first at `left`
// and the second at `right`.
bool piece_merger::follows(std::span<const symbol> symbols, std::size_t left, std::size_t right,
                           std::size_t end) {
  scratch_.assign(symbols.begin() + static_cast<std::ptrdiff_t>(left),
                  symbols.begin() + static_cast<std::ptrdiff_t>(end));
  merge_in_place(scratch_);
  for (std::size_t i = 1; i < scratch_.size(); ++i) {
    if ((scratch_[i] != merged_away) != (left + i == right)) return false;
  }
  return true;
}

std::size_t piece_merger::merge_long(std::span<symbol> symbols) {
  merge_in_place(symbols);
  return static_cast<std::size_t>(std::remove(symbols.begin(), symbols.end(), merged_away) -
                                  symbols.begin());
}

// Each merge replaces the first symbol of its pair with the result, and the second with
// `merged_away`.
void piece_merger::merge_in_place(std::span<symbol> symbols) {
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
    // Skip an entry that is out of date: its left symbol is gone or is now the last symbol, or the
    // rank of its pair has changed. (If the new pair has the same rank, merge it now: its own entry
    // would come next.)
    if (symbols[left] == merged_away || links_[left].after == nobody) continue;
    const std::uint32_t right = links_[left].after;
    const symbol merged = merges_->find(symbols[left], symbols[right]);
    if (merged == piece_merges::none || merges_->rank(merged) != rank) continue;

    symbols[left] = merged;
    symbols[right] = merged_away;
    const std::uint32_t after = links_[right].after;
    links_[left].after = after;
    if (after != nobody) links_[after].before = left;
    if (links_[left].before != nobody) pushed_to_heap(links_[left].before, left);
    if (after != nobody) pushed_to_heap(left, after);
  }

  if (count > kept_text_links) {
    links_ = {};
    open_ = {};
  }
}

}  // namespace millrace::tokenizer::detail
