// SPDX-License-Identifier: Apache-2.0
#include "bpe/short_merge.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bpe/pair_table.hpp"
#include "naive_bpe.hpp"
#include "support/instruction_sets.hpp"

namespace millrace::tokenizer::detail {
namespace {

constexpr std::uint32_t id_limit = pair_table::max_id + 1;

std::array<std::int32_t, 256> bytes_as_ids() {
  std::array<std::int32_t, 256> ids;
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i);
  return ids;
}

std::uint32_t number_below(std::mt19937& random, std::uint32_t limit) {
  return static_cast<std::uint32_t>(random()) % limit;
}

void add(pair_table& table, std::uint32_t left, std::uint32_t right, std::uint32_t result) {
  table.add({static_cast<std::int32_t>(left), static_cast<std::int32_t>(right),
             static_cast<std::int32_t>(result)});
}

bool has_no_room(const pair_table::line& line) {
  return line.merges.back() == pair_table::elsewhere;
}

TEST(PairTable, TellsEveryPairFromAllOthers) {
  std::mt19937 random(11);
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> expected;
  while (expected.size() < 50'000) {
    // Half of the ids are below 64, so that many pairs differ in a few bits only.
    const std::uint32_t left = number_below(random, random() % 2 == 0 ? 64 : id_limit);
    const std::uint32_t right = number_below(random, random() % 2 == 0 ? 64 : id_limit);
    expected.emplace(std::pair(left, right), number_below(random, id_limit));
  }
  pair_table table(expected.size(), bytes_as_ids());
  for (const auto& [pair, result] : expected) add(table, pair.first, pair.second, result);
  const auto check = [&](std::uint32_t left, std::uint32_t right) {
    const auto known = expected.find({left, right});
    const std::uint32_t result = known == expected.end() ? pair_table::none : known->second;
    ASSERT_EQ(table.find(left, right), result) << left << ' ' << right;
  };
  for (const auto& [pair, result] : expected) {
    check(pair.first, pair.second);
    for (std::uint32_t bit = 1; bit < id_limit; bit *= 2) {
      check(pair.first ^ bit, pair.second);
      check(pair.first, pair.second ^ bit);
    }
  }
}

TEST(PairTable, KeepsPairsForWhichTheirLineHasNoRoom) {
  constexpr std::size_t count = 500;
  std::mt19937 random(12);
  pair_table table(count, bytes_as_ids());
  const pair_table::line* const full = table.place_of(1, 2).home;
  std::vector<std::pair<std::uint32_t, std::uint32_t>> inside;
  while (inside.size() < count + 100) {
    const std::pair pair(number_below(random, id_limit), number_below(random, id_limit));
    if (table.place_of(pair.first, pair.second).home == full) inside.push_back(pair);
  }
  for (std::uint32_t i = 0; i < count; ++i) add(table, inside[i].first, inside[i].second, i);
  EXPECT_TRUE(has_no_room(*full));
  for (std::uint32_t i = 0; i < inside.size(); ++i) {
    ASSERT_EQ(table.find(inside[i].first, inside[i].second), i < count ? i : pair_table::none);
  }
}

TEST(PairTable, HasALineWithoutPairsForSymbolsThatDoNotExist) {
  std::mt19937 random(13);
  pair_table table(5'000, bytes_as_ids());
  for (std::uint32_t i = 0; i < 5'000; ++i) add(table, i, number_below(random, id_limit), i);
  const pair_table::line* const empty = table.place_of(pair_table::no_symbol, 0).home;
  for (std::uint32_t id = 0; id < id_limit; id += 97) {
    ASSERT_EQ(table.place_of(pair_table::no_symbol, id).home, empty);
    ASSERT_EQ(table.place_of(id, pair_table::no_symbol).home, empty);
    ASSERT_NE(table.place_of(id, id).home, empty);
  }
  for (const std::uint32_t merge : empty->merges) EXPECT_EQ(merge, pair_table::none);
}

pair_table table_of(const test::naive_bpe& naive) {
  pair_table table(naive.rules.size(), naive.byte_ids);
  for (const merge_rule& rule : naive.rules) table.add(rule);
  return table;
}

// A text of letters and tokens.
std::string text_of(const test::naive_bpe& naive, std::size_t size, std::mt19937& random) {
  std::string text;
  while (text.size() < size) {
    const std::size_t id =
        random() % 2 == 0 ? 'a' + random() % 26 : 256 + random() % naive.rules.size();
    text += naive.tokens.bytes(static_cast<std::int32_t>(id));
  }
  text.resize(size);
  return text;
}

// Some lines of so large a table have no room for all of their pairs.
TEST(ShortMerge, GivesWhatTheDefinitionOfBpeGives) {
  std::mt19937 random(14);
  const test::naive_bpe naive(random, "abcdefghijklmnopqrstuvwxyz", 4'000);
  const pair_table table = table_of(naive);
  std::size_t pairs_of_full_lines = 0;
  for (const merge_rule& rule : naive.rules) {
    const auto at = table.place_of(static_cast<std::uint32_t>(rule.left),
                                   static_cast<std::uint32_t>(rule.right));
    pairs_of_full_lines += has_no_room(*at.home) ? 1U : 0U;
  }
  ASSERT_GT(pairs_of_full_lines, 100U);

  std::array<short_word, short_word::most_at_once> words;
  for (int round = 0; round < 300; ++round) {
    const std::size_t longest = 1 + random() % short_word::max_bytes;
    std::vector<std::string> texts(1 + random() % words.size());
    for (std::string& text : texts) text = text_of(naive, 1 + random() % longest, random);
    for (const instruction_set set : test::instruction_sets) {
      if (!can_run(set)) continue;
      for (std::size_t i = 0; i < texts.size(); ++i) start_word(table, texts[i], words[i]);
      merge_short(table, std::span(words).first(texts.size()), set);
      for (std::size_t i = 0; i < texts.size(); ++i) {
        const std::vector<std::int32_t> ids(words[i].ids().begin(), words[i].ids().end());
        ASSERT_EQ(ids, naive.encode(texts[i])) << texts[i];
      }
    }
  }
}

TEST(ShortMerge, GivesTheSameForOneWordOfUpTo128Bytes) {
  std::mt19937 random(15);
  const test::naive_bpe naive(random, "abcdefghijklmnopqrstuvwxyz", 4'000);
  const test::naive_bpe few(random, "ab", 60);  // so that equal pairs follow each other
  for (const test::naive_bpe* each : {&naive, &few}) {
    const pair_table table = table_of(*each);
    for (std::size_t size = 1; size <= medium_word::max_bytes; ++size) {
      for (const std::string& text :
           {text_of(*each, size, random), text_of(*each, size, random), std::string(size, 'a')}) {
        const std::vector<std::int32_t> expected = each->encode(text);
        for (const instruction_set set : test::instruction_sets) {
          if (!can_run(set)) continue;
          medium_word word;
          ASSERT_TRUE(start_word(table, text, word));
          merge_medium(table, word, set);
          ASSERT_EQ(std::vector<std::int32_t>(word.ids().begin(), word.ids().end()), expected)
              << text;
        }
      }
    }
  }
}

TEST(ShortMerge, RefusesBytesWithoutAToken) {
  std::array<std::int32_t, 256> ids = bytes_as_ids();
  ids['x'] = -1;
  const pair_table table(1, ids);
  short_word word;
  EXPECT_TRUE(start_word(table, "abc", word));
  EXPECT_FALSE(start_word(table, "abxc", word));
}

}  // namespace
}  // namespace millrace::tokenizer::detail
