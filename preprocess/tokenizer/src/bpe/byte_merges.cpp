// SPDX-License-Identifier: Apache-2.0
#include "bpe/byte_merges.hpp"

#include <algorithm>
#include <utility>

#include <millrace/formats/detail/free_memory.hpp>

namespace millrace::tokenizer::detail {
namespace {

// If a huge word needs scratch memory for more symbols than this, that memory is freed before the
// next word that needs any. Ordinary words need less.
constexpr std::size_t kept_word_symbols = std::size_t{1} << 20;

// True if a pair_table can hold all ids and the result ids never decrease from one rule to the
// next. Then all rules with the same result are adjacent.
bool is_ordered(std::span<const merge_rule> rules) {
  for (std::size_t i = 0; i < rules.size(); ++i) {
    const merge_rule& rule = rules[i];
    if (std::max({rule.left, rule.right, rule.result}) > pair_table::max_id) return false;
    if (i > 0 && rules[i - 1].result > rule.result) return false;
  }
  return true;
}

// Finds the rules that can apply. Of several rules with the same result, only one can apply:
// merging a token's bytes depends only on those bytes, so the last merge always joins the same two
// pieces. Converted vocabularies have a rule for every way to cut a token in two. Keeping the
// unused rules would waste cache.
class applicable_rules {
 public:
  applicable_rules(std::span<const merge_rule> rules, const token_table& tokens, pair_table& table)
      : all_rules_(rules), rules_(rules), tokens_(&tokens), table_(&table) {}

  /// Returns the applicable rules, adds them to the table and marks their results in `reached`.
  std::vector<merge_rule> find(std::vector<std::uint8_t>& reached) {
    std::vector<merge_rule> kept;
    while (!rules_.empty()) {
      look_ahead();
      for (const group& next : std::span(groups_).first(count_)) {
        if (next.bytes.size() > short_word::max_bytes) {  // rare: keep all rules of the group
          for (const merge_rule& rule : next.rules) keep(rule, kept);
          continue;
        }
        if (!leave_two(next)) continue;
        for (const merge_rule& rule : next.rules) {
          if (symbols_[0] != rule.left || symbols_[1] != rule.right) continue;
          keep(rule, kept);
          reached[static_cast<std::size_t>(rule.result)] = 1;
          break;  // two rules may have the same pair
        }
      }
    }
    return kept;
  }

 private:
  // All rules that have the same result.
  struct group {
    std::span<const merge_rule> rules;
    std::string_view bytes;
    const short_word* merged;  // null if a byte has no token
  };

  // Reads the next groups. For each group, merges the bytes of its result with only the rules that
  // come before all of these groups. If two pieces are left, only the rule that joins these two
  // pieces to the result can still apply, because all rules of the new groups have later ranks.
  void look_ahead() {
    const instruction_set set = best_instruction_set();
    std::size_t word_count = 0;
    for (count_ = 0; count_ < groups_.size() && !rules_.empty(); ++count_) {
      const std::int32_t result = rules_.front().result;
      const auto other = std::ranges::find_if(
          rules_, [&](const merge_rule& rule) { return rule.result != result; });
      const auto size = static_cast<std::size_t>(other - rules_.begin());
      group& next = groups_[count_] = {rules_.first(size), tokens_->bytes(result), nullptr};
      rules_ = rules_.subspan(size);
      if (next.bytes.empty() || next.bytes.size() > short_word::max_bytes) continue;
      short_word& word = words_[word_count];
      if (!start_word(*table_, next.bytes, word)) continue;
      next.merged = &word;
      ++word_count;
    }
    merge_short(*table_, std::span(words_).first(word_count), set);
  }

  void keep(const merge_rule& rule, std::vector<merge_rule>& kept) {
    table_->add(rule);
    kept.push_back(rule);
  }

  // Merges the bytes of a result until two pieces are left in symbols_. Returns false if the merges
  // never leave exactly two pieces.
  bool leave_two(const group& next) {
    if (next.merged == nullptr) return false;
    const std::span<const std::int32_t> merged = next.merged->ids();
    symbols_.assign(merged.begin(), merged.end());
    if (symbols_.size() == 2) return true;
    const instruction_set set = best_instruction_set();
    start_word(*table_, next.bytes, again_);
    merge_short(*table_, {&again_, 1}, set);
    symbols_.assign(again_.ids().begin(), again_.ids().end());
    if (symbols_.size() == 2) return true;
    // A rule that produces a part of the result can even come after the rule for the result. So try
    // all rules here.
    symbols_.clear();
    for (const char c : next.bytes) {
      symbols_.push_back(table_->byte_ids()[static_cast<unsigned char>(c)]);
    }
    if (!all_) all_.emplace(all_rules_);
    while (symbols_.size() > 2) {
      merge_table::merge best;
      std::size_t place = 0;
      for (std::size_t i = 0; i + 1 < symbols_.size(); ++i) {
        const auto found = all_->find(symbols_[i], symbols_[i + 1]);
        if (found.rank >= best.rank) continue;
        best = found;
        place = i;
      }
      if (best.rank == merge_table::no_rank) return false;
      symbols_[place] = best.result;
      symbols_.erase(symbols_.begin() + static_cast<std::ptrdiff_t>(place) + 1);
    }
    return symbols_.size() == 2;
  }

  std::array<short_word, short_word::most_at_once> words_;
  short_word again_;
  std::span<const merge_rule> all_rules_;
  std::span<const merge_rule> rules_;  // the rules that are not read yet
  const token_table* tokens_;
  pair_table* table_;
  std::array<group, short_word::most_at_once> groups_;
  std::size_t count_ = 0;
  std::optional<merge_table> all_;
  std::vector<std::int32_t> symbols_;
};

}  // namespace

byte_merges::byte_merges(const std::array<std::int32_t, 256>& byte_ids,
                         std::vector<merge_rule> rules, const token_table& tokens)
    : byte_ids_(byte_ids),
      tokens_(&tokens),
      reached_(static_cast<std::size_t>(tokens.end_id())),
      covers_all_bytes_(std::ranges::min(byte_ids) >= 0) {
  // Drop rules whose result has no bytes, because no text produces that token.
  std::erase_if(rules, [&](const merge_rule& rule) { return !tokens.has(rule.result); });
  if (std::ranges::max(byte_ids) <= pair_table::max_id && is_ordered(rules)) {
    const std::size_t given = rules.size();
    ordered_.emplace(given, byte_ids);
    rules = applicable_rules(rules, tokens, *ordered_).find(reached_.own());
    if (rules.size() < given) {  // as in converted vocabularies: a table of the others is smaller
      pair_table applicable(rules.size(), byte_ids);
      for (const merge_rule& rule : rules) applicable.add(rule);
      ordered_ = std::move(applicable);
    }
  }
  all_.emplace(rules);
}

byte_merges::byte_merges(table_reader& in, const token_table& tokens) : tokens_(&tokens) {
  fields(in, *this);
  all_.emplace(in);
  if (in.number<bool>()) ordered_.emplace(in);
}

void byte_merges::write(table_writer& out) const {
  fields(out, *this);
  merge_table::fields(out, *all_);
  out(ordered_.has_value());
  if (ordered_) pair_table::fields(out, *ordered_);
}

std::span<const std::int32_t> byte_merger::merge(std::string_view word) {
  if (const pair_table* pairs = merges_->ordered(); pairs != nullptr && !word.empty()) {
    if (word.size() <= short_word::max_bytes) {
      if (start_word(*pairs, word, shorts_[0])) {
        merge_short(*pairs, std::span(shorts_).first(1), set_);
        return shorts_[0].ids();
      }
    } else if (word.size() <= medium_word::max_bytes && start_word(*pairs, word, medium_)) {
      merge_medium(*pairs, medium_, set_);
      return medium_.ids();
    }
  }
  if (symbols_.size() < word.size() || symbols_.size() > kept_word_symbols) {
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

std::span<const short_word> byte_merger::merge_together(std::span<const std::string_view> words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    start_word(*merges_->ordered(), words[i], shorts_[i]);
  }
  const auto started = std::span(shorts_).first(words.size());
  merge_short(*merges_->ordered(), started, set_);
  return started;
}

// Returns `word` without the bytes that have no token. Such a byte produces no id, and the symbols
// on its two sides can merge with each other. After these bytes are removed, the caller can compute
// from a list of ids how many bytes of the word the list covers.
std::string_view byte_merger::with_tokens(std::string_view word) {
  if (merges_->covers_all_bytes()) return word;
  const auto has_none = [&](char c) {
    return merges_->byte_ids()[static_cast<unsigned char>(c)] < 0;
  };
  if (std::ranges::none_of(word, has_none)) return word;
  if (covered_.capacity() > kept_word_symbols) formats::free_memory(covered_);
  covered_ = word;
  std::erase_if(covered_, has_none);
  return covered_;
}

// Encodes a long word one part at a time. A sequence of tokens is the encoding of its bytes if, for
// each pair of adjacent tokens, the bytes of the pair alone encode to that pair. The reason: the
// first merge across a boundary between two tokens would also happen if these two tokens were
// encoded alone. So where two parts meet, the function encodes the last token of one part together
// with the first token of the next. If the result is not these two tokens, the function drops
// tokens from the end of the earlier part. The next part then begins where the dropped tokens
// began, and is longer.
void byte_merger::append(std::string_view word, id_buffer& ids) {
  if (word.size() > part_bytes) word = with_tokens(word);
  if (word.size() <= part_bytes) {
    ids.append(merge(word));
    return;
  }
  const std::size_t start = ids.size();
  std::size_t wanted = part_bytes;
  std::size_t furthest = 0;  // end of the furthest part so far
  for (std::size_t at = 0;;) {
    const std::string_view part = word.substr(at, wanted);
    furthest = std::max(furthest, at + part.size());
    const auto found = merge(part);
    part_ids_.assign(found.begin(), found.end());
    if (ids.size() != start && !follows(ids.ids().back(), part_ids_.front())) {
      // Drop the last few tokens. Each further failure drops more tokens, until all are dropped.
      const std::size_t back = std::min(ids.size() - start, wanted / part_bytes * 8);
      for (std::size_t i = 0; i < back; ++i) at -= drop_last(ids);
      wanted = 2 * std::max(wanted, furthest - at);  // past all failed parts, so that the loop ends
      continue;
    }
    ids.append(part_ids_);
    at += part.size();
    if (at == word.size()) return;
    wanted = part_bytes;
    // Drop the last few tokens, because the bytes after this part may merge with them.
    const std::size_t dropped = std::min<std::size_t>(4, part_ids_.size() / 4);
    for (std::size_t i = 0; i < dropped; ++i) at -= drop_last(ids);
  }
}

bool byte_merger::follows(std::int32_t left, std::int32_t right) {
  seam_ = merges_->tokens().bytes(left);
  seam_ += merges_->tokens().bytes(right);
  const auto both = merge(seam_);
  return both.size() == 2 && both[0] == left && both[1] == right;
}

std::size_t byte_merger::drop_last(id_buffer& ids) const noexcept {
  const std::size_t size_bytes = merges_->tokens().bytes(ids.ids().back()).size();
  ids.truncate(ids.size() - 1);
  return size_bytes;
}

}  // namespace millrace::tokenizer::detail
