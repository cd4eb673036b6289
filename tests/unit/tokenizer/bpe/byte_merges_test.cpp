// SPDX-License-Identifier: Apache-2.0
#include "bpe/byte_merges.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "naive_bpe.hpp"
#include "support/instruction_sets.hpp"

namespace millrace::tokenizer::detail {
namespace {

using ids_list = std::vector<std::int32_t>;

std::string random_word(std::mt19937& random, std::string_view alphabet, std::size_t size) {
  std::string word(size, ' ');
  for (char& c : word) c = alphabet[random() % alphabet.size()];
  return word;
}

ids_list merged(byte_merger& merger, std::string_view word) {
  const auto ids = merger.merge(word);
  return {ids.begin(), ids.end()};
}

TEST(ByteMerger, GivesWhatMergingGives) {
  std::mt19937 random(3);
  for (int round = 0; round < 20; ++round) {
    const test::naive_bpe naive(random, "abc", 60);
    const byte_merges merges(naive.byte_ids, naive.rules, naive.tokens);
    ASSERT_NE(merges.ordered(), nullptr);
    for (const instruction_set set : test::instruction_sets) {
      if (!can_run(set)) continue;
      byte_merger merger(merges, set);
      for (std::size_t size = 0; size < 140; ++size) {
        const std::string word = random_word(random, "abcd", size);
        ASSERT_EQ(merged(merger, word), naive.encode(word)) << word;
      }
    }
  }
}

// Rules that never apply do not mislead the merger. A vocabulary that was converted from ranks has
// such rules: one rule for every way to split a token in two.
TEST(ByteMerger, IsNotMisledByRulesThatNeverApply) {
  std::mt19937 random(5);
  const test::naive_bpe naive(random, "ab", 80);
  std::vector<merge_rule> rules;
  for (const merge_rule& rule : naive.rules) {
    const std::string_view bytes = naive.tokens.bytes(rule.result);
    std::vector<merge_rule> all;
    for (std::int32_t left = 0; left < naive.tokens.end_id(); ++left) {
      if (!bytes.starts_with(naive.tokens.bytes(left))) continue;
      for (std::int32_t right = 0; right < naive.tokens.end_id(); ++right) {
        if (naive.tokens.bytes(left).size() + naive.tokens.bytes(right).size() == bytes.size() &&
            bytes.ends_with(naive.tokens.bytes(right))) {
          all.push_back({left, right, rule.result});
        }
      }
    }
    std::ranges::shuffle(all, random);
    rules.insert(rules.end(), all.begin(), all.end());
  }
  ASSERT_GT(rules.size(), naive.rules.size());
  const byte_merges merges(naive.byte_ids, rules, naive.tokens);
  byte_merger merger(merges, instruction_set::portable);
  for (int i = 0; i < 2000; ++i) {
    const std::string word = random_word(random, "ab", random() % 50);
    ASSERT_EQ(merged(merger, word), naive.encode(word)) << word;
  }
}

// If ids are not in order of rank, the merger has no compact table, but gives the same ids.
TEST(ByteMerger, TakesIdsInAnyOrder) {
  const std::string a = "a";
  token_table tokens;
  std::array<std::int32_t, 256> byte_ids{};
  for (int byte = 0; byte < 256; ++byte) {
    byte_ids[static_cast<std::size_t>(byte)] = byte;
    tokens.add(byte, std::string(1, static_cast<char>(byte)));
  }
  tokens.add(256, "bc");
  tokens.add(257, "ab");
  const byte_merges merges(byte_ids, {{'a', 'b', 257}, {'b', 'c', 256}}, tokens);
  EXPECT_EQ(merges.ordered(), nullptr);
  byte_merger merger(merges, best_instruction_set());
  EXPECT_EQ(merged(merger, "abc"), (ids_list{257, 'c'}));
  EXPECT_EQ(merged(merger, "bc"), (ids_list{256}));
}

// Long words are merged in parts. This must not affect ids, even if tokens cross the border between
// two parts.
TEST(ByteMerger, AppendsLongWordsAsIfInOnePiece) {
  std::mt19937 random(9);
  for (int round = 0; round < 12; ++round) {
    const std::string_view alphabet = round % 3 == 0 ? "a" : round % 3 == 1 ? "ab" : "abcde";
    const test::naive_bpe naive(random, alphabet, 100);
    const byte_merges merges(naive.byte_ids, naive.rules, naive.tokens);
    ASSERT_TRUE(merges.covers_all_bytes());
    byte_merger merger(merges, best_instruction_set());
    std::string word = random_word(random, alphabet, 500 + random() % 2500);
    if (round % 5 == 0) {  // a period of any size, not just a power of two
      const std::string period = random_word(random, alphabet, 1 + random() % 37);
      for (std::size_t i = 0; i < word.size(); ++i) word[i] = period[i % period.size()];
    }
    id_buffer ids;
    ids.push_back(-7);  // existing ids are kept
    merger.append(word, ids);
    ids_list expected = naive.encode(word);
    expected.insert(expected.begin(), -7);
    ASSERT_EQ(ids_list(ids.ids().begin(), ids.ids().end()), expected) << word;
  }
}

// Bytes without a token give no ids, no matter where parts end.
TEST(ByteMerger, AppendsLongWordsWithoutTheBytesThatHaveNoToken) {
  std::mt19937 random(12);
  for (int round = 0; round < 12; ++round) {
    const test::naive_bpe naive(random, "abc", 100);
    std::array<std::int32_t, 256> byte_ids = naive.byte_ids;
    for (const char lacking : {'x', 'y', 'z'}) byte_ids[static_cast<unsigned char>(lacking)] = -1;
    const byte_merges merges(byte_ids, naive.rules, naive.tokens);
    ASSERT_FALSE(merges.covers_all_bytes());
    byte_merger merger(merges, best_instruction_set());
    const std::string_view alphabet = round % 3 == 0 ? "xyz" : round % 3 == 1 ? "abcx" : "ax";
    const std::string word = random_word(random, alphabet, 500 + random() % 2500);
    std::string without = word;
    std::erase_if(without, [](char c) { return c >= 'x'; });
    id_buffer ids;
    ids.push_back(-7);
    merger.append(word, ids);
    ids_list expected = naive.encode(without);
    expected.insert(expected.begin(), -7);
    ASSERT_EQ(ids_list(ids.ids().begin(), ids.ids().end()), expected) << word;
  }
}

// The word consists of 40 runs of equal letters. Each run has 96 letters and is one token. Any two
// adjacent tokens merge, and pairs further right merge first. So every part except the whole word
// ends with a wrong merge. Dropping tokens from the end of such a part always leads back to the
// beginning of the part.
TEST(ByteMerger, GoesOnWhereNoPartEndsWell) {
  std::string letters;
  for (char c = 'a'; c <= 'z'; ++c) letters += c;
  for (char c = 'A'; c <= 'N'; ++c) letters += c;
  token_table tokens;
  std::array<std::int32_t, 256> byte_ids{};
  for (int byte = 0; byte < 256; ++byte) {
    byte_ids[static_cast<std::size_t>(byte)] = byte;
    tokens.add(byte, std::string(1, static_cast<char>(byte)));
  }
  std::vector<merge_rule> rules;
  const auto join = [&](std::int32_t left, std::int32_t right) {
    const auto id = static_cast<std::int32_t>(tokens.end_id());
    tokens.add(id, std::string(tokens.bytes(left)) + std::string(tokens.bytes(right)));
    rules.push_back({left, right, id});
    return id;
  };
  std::vector<std::int32_t> longs;
  std::string word;
  for (const char c : letters) {
    std::int32_t id = c;
    std::int32_t half = c;
    for (int doubled = 0; doubled < 6; ++doubled) {
      half = id;
      id = join(id, id);
    }
    longs.push_back(join(id, half));
    word += tokens.bytes(longs.back());
  }
  for (std::size_t i = longs.size() - 1; i > 0; --i) join(longs[i - 1], longs[i]);

  const byte_merges merges(byte_ids, rules, tokens);
  byte_merger merger(merges, best_instruction_set());
  const ids_list whole = merged(merger, word);
  id_buffer ids;
  merger.append(word, ids);
  EXPECT_EQ(ids_list(ids.ids().begin(), ids.ids().end()), whole);
}

// The merger skips a rule if its result has no bytes. Such a result can be a special token, which
// merging never produces.
TEST(ByteMerger, PassesOverRulesWithoutTheBytesOfTheirResult) {
  std::mt19937 random(29);
  const test::naive_bpe naive(random, "ab", 10);
  std::vector<merge_rule> rules = naive.rules;
  rules.push_back({'x', 'y', static_cast<std::int32_t>(naive.tokens.end_id()) + 5});
  const byte_merges merges(naive.byte_ids, rules, naive.tokens);
  byte_merger merger(merges, best_instruction_set());
  EXPECT_EQ(merged(merger, "xy"), (ids_list{'x', 'y'}));
  EXPECT_EQ(merged(merger, "abab"), naive.encode("abab"));
}

// Pairs are packed into 40 bits if the ids fit. If the id of a byte does not fit, it must not match
// the id of another byte.
TEST(ByteMerger, KeepsLargeIdsOfBytesApart) {
  token_table tokens;
  std::array<std::int32_t, 256> byte_ids{};
  for (int byte = 0; byte < 256; ++byte) {
    byte_ids[static_cast<std::size_t>(byte)] = byte;
    if (byte != 'z') tokens.add(byte, std::string(1, static_cast<char>(byte)));
  }
  byte_ids['z'] = (1 << 20) + 'b';
  tokens.add(byte_ids['z'], "z");
  tokens.add(300, "db");
  const byte_merges merges(byte_ids, {{'d', 'b', 300}}, tokens);
  byte_merger merger(merges, best_instruction_set());
  EXPECT_EQ(merged(merger, "db"), (ids_list{300}));
  EXPECT_EQ(merged(merger, "cz"), (ids_list{'c', byte_ids['z']}));
  EXPECT_EQ(merged(merger, "dz"), (ids_list{'d', byte_ids['z']}));
}

// Rules apply even if they come before the rules for their parts. In Llama 3, some tokens have
// lower ranks than their parts. When a later merge produces such a pair of parts, the pair merges
// at once.
TEST(ByteMerger, TakesRulesWhosePartsComeAfterTheirResult) {
  token_table tokens;
  std::array<std::int32_t, 256> byte_ids{};
  for (int byte = 0; byte < 256; ++byte) {
    byte_ids[static_cast<std::size_t>(byte)] = byte;
    tokens.add(byte, std::string(1, static_cast<char>(byte)));
  }
  tokens.add(256, "abc");
  tokens.add(257, "bc");
  tokens.add(258, "ab");
  tokens.add(259, "abcd");
  const byte_merges merges(byte_ids,
                           {{'a', 257, 256},
                            {258, 'c', 256},
                            {'b', 'c', 257},
                            {'a', 'b', 258},
                            {256, 'd', 259},
                            {258, 'd', 259}},
                           tokens);
  ASSERT_NE(merges.ordered(), nullptr);
  for (const instruction_set set : test::instruction_sets) {
    if (!can_run(set)) continue;
    byte_merger merger(merges, set);
    EXPECT_EQ(merged(merger, "abc"), (ids_list{256}));
    EXPECT_EQ(merged(merger, "abcd"), (ids_list{259}));
    EXPECT_EQ(merged(merger, "abd"), (ids_list{258, 'd'}));
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
