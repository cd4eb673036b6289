// SPDX-License-Identifier: Apache-2.0
#include "bpe/byte_merges.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

namespace millrace::tokenizer::detail {
namespace {

// Symbols of one huge word are not kept for the ordinary ones that follow it.
constexpr std::size_t kept_symbols = std::size_t{1} << 20;

// Whether results rise with rank, those of one result being neighbours.
bool is_ordered(std::span<const merge_rule> rules) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const merge_rule& rule = rules[i];
    if (std::max({rule.left, rule.right, rule.result}) > pair_table::max_id) return false;
    if (i > 0 && rules[i - 1].result > rule.result) return false;
  }
  return true;
}

// The symbols of `word`, where every byte has a token.
bool set_symbols(const std::array<std::int32_t, 256>& byte_ids, std::string_view word,
                 short_symbols& symbols) noexcept {
  symbols.count = word.size();
  std::int32_t lowest = 0;
  for (std::size_t i = 0; i < word.size(); ++i) {
    const std::int32_t id = byte_ids[static_cast<unsigned char>(word[i])];
    lowest = std::min(lowest, id);
    symbols.ids[i] = static_cast<std::uint32_t>(id);
  }
  return lowest >= 0;
}

// Of several rules for one result only one can ever apply: when it does, the bytes of the result
// have merged among themselves with all lower rules, as they would alone. So each token's bytes,
// merged with the rules before its own, tell which; the others only cost cache.
std::vector<merge_rule> rules_that_apply(std::span<const merge_rule> rules,
                                         const std::array<std::int32_t, 256>& byte_ids,
                                         const token_table& tokens, pair_table& table) {
  std::vector<merge_rule> kept;
  short_symbols symbols;
  for (std::size_t begin = 0, end = 0; begin < rules.size(); begin = end) {
    const std::int32_t result = rules[begin].result;
    while (end < rules.size() && rules[end].result == result) ++end;
    const auto group = rules.subspan(begin, end - begin);
    const std::string_view bytes = tokens.bytes(result);
    // Long ones are few: all their rules stay.
    const bool is_short = bytes.size() <= short_symbols::capacity;
    if (is_short && set_symbols(byte_ids, bytes, symbols)) {
      merge_short(table, symbols, best_instruction_set());
    } else {
      symbols.count = 0;
    }
    for (const merge_rule& rule : group) {
      const bool applies =
          !is_short || (symbols.count == 2 && std::cmp_equal(symbols.ids[0], rule.left) &&
                        std::cmp_equal(symbols.ids[1], rule.right));
      if (!applies) continue;
      table.add(rule);
      kept.push_back(rule);
      if (is_short) break;  // a pair that is there twice
    }
  }
  return kept;
}

}  // namespace

byte_merges::byte_merges(const std::array<std::int32_t, 256>& byte_ids,
                         std::vector<merge_rule> rules, const token_table& tokens)
    : byte_ids_(byte_ids), tokens_(&tokens) {
  if (is_ordered(rules)) {
    ordered_.emplace(rules.size());
    rules = rules_that_apply(rules, byte_ids, tokens, *ordered_);
    // Where a byte gives nothing, tokens do not tell how far in the text they are.
    if (std::ranges::min(byte_ids) >= 0) neighbours_.emplace(rules);
  }
  all_.emplace(rules);
}

std::span<const std::int32_t> byte_merger::merge(std::string_view word) {
  if (merges_->ordered() != nullptr && word.size() <= short_symbols::capacity &&
      set_symbols(merges_->byte_ids(), word, short_)) {
    merge_short(*merges_->ordered(), short_, set_);
    return {reinterpret_cast<const std::int32_t*>(short_.ids), short_.count};
  }
  if (symbols_.size() < word.size() || symbols_.size() > kept_symbols) {
    symbols_ = std::vector<std::int32_t>(std::max<std::size_t>(word.size(), 64));
  }
  std::size_t count = 0;
  for (const char c : word) {
    const std::int32_t id = merges_->byte_ids()[static_cast<unsigned char>(c)];
    if (id >= 0) symbols_[count++] = id;
  }
  const std::span<std::int32_t> symbols(symbols_.data(), count);
  return symbols.first(long_merger_.merge(symbols));
}

// A part of a long word at a time. Where two parts meet, their tokens have to be neighbours that
// may follow each other; if they are not, the earlier part gives up tokens until they are, and if
// that does not help it is made longer.
void byte_merger::append(std::string_view word, id_buffer& ids) {
  if (word.size() <= part_bytes || !merges_->has_neighbours()) {
    ids.append(merge(word));
    return;
  }
  const std::size_t start = ids.size();
  std::size_t wanted = part_bytes;
  for (std::size_t at = 0;;) {
    const std::string_view part = word.substr(at, wanted);
    const auto found = merge(part);
    const bool fits = ids.size() == start || follows(ids.ids().back(), found.front());
    if (fits) {
      ids.append(found);
      at += part.size();
      if (at == word.size()) return;
      wanted = part_bytes;
      // Its end is the least certain, as it does not see what follows.
      const std::size_t dropped = std::min<std::size_t>(4, found.size() / 4);
      for (std::size_t i = 0; i < dropped; ++i) at -= drop_last(ids);
    } else {
      // A few tokens back, and further with each failure, at last to the beginning.
      const std::size_t back = std::min(ids.size() - start, wanted / part_bytes * 8);
      for (std::size_t i = 0; i < back; ++i) at -= drop_last(ids);
      wanted *= 2;
    }
  }
}

bool byte_merger::follows(std::int32_t left, std::int32_t right) const noexcept {
  return merges_->neighbours().may_follow(*merges_->ordered(), static_cast<std::uint32_t>(left),
                                          static_cast<std::uint32_t>(right));
}

std::size_t byte_merger::drop_last(id_buffer& ids) const noexcept {
  const std::size_t size_bytes = merges_->tokens().bytes(ids.ids().back()).size();
  ids.truncate(ids.size() - 1);
  return size_bytes;
}

std::vector<merge_rule> merges_of_ranks(const token_table& tokens,
                                        const std::array<std::int32_t, 256>& byte_ids) {
  std::unordered_map<std::string_view, std::int32_t> ids;
  ids.reserve(tokens.count());
  for (std::int64_t id = 0; id < tokens.end_id(); ++id) {
    if (tokens.has(id)) ids.emplace(tokens.bytes(id), static_cast<std::int32_t>(id));
  }
  struct piece {
    std::size_t begin;
    std::int32_t id;
  };
  std::vector<merge_rule> rules;
  std::vector<piece> pieces;
  for (std::int64_t id = 0; id < tokens.end_id(); ++id) {
    if (!tokens.has(id) || tokens.bytes(id).size() < 2) continue;
    const std::string_view bytes = tokens.bytes(id);
    pieces.clear();
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      pieces.push_back({i, byte_ids[static_cast<unsigned char>(bytes[i])]});
    }
    while (pieces.size() > 2) {
      std::size_t best = pieces.size();
      std::int32_t lowest = static_cast<std::int32_t>(id);
      for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
        const std::size_t end = i + 2 < pieces.size() ? pieces[i + 2].begin : bytes.size();
        const auto found = ids.find(bytes.substr(pieces[i].begin, end - pieces[i].begin));
        if (found != ids.end() && found->second < lowest) {
          lowest = found->second;
          best = i;
        }
      }
      if (best == pieces.size()) break;
      pieces[best].id = lowest;
      pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(best) + 1);
    }
    if (pieces.size() == 2) {
      rules.push_back({pieces[0].id, pieces[1].id, static_cast<std::int32_t>(id)});
    }
  }
  return rules;
}

}  // namespace millrace::tokenizer::detail
