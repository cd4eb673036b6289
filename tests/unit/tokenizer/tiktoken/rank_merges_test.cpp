// SPDX-License-Identifier: Apache-2.0
#include "tiktoken/rank_merges.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

#include "bpe/bpe_merger.hpp"
#include "bpe/merge_table.hpp"
#include "support/seed.hpp"

namespace millrace::tokenizer::detail {
namespace {

// Implements the definition of tiktoken: of all adjacent pairs of pieces whose joined bytes are a
// token, the pair with the lowest rank merges, the leftmost on ties.
std::vector<std::int32_t> naive(const ranked_tokens& tokens, std::string_view word) {
  std::vector<std::string> pieces;
  for (const char c : word) pieces.emplace_back(1, c);
  for (;;) {
    std::size_t best = pieces.size();
    std::int32_t lowest = -1;
    for (std::size_t i = 0; i + 1 < pieces.size(); ++i) {
      const auto id = tokens.find(pieces[i] + pieces[i + 1]);
      if (id && (best == pieces.size() || *id < lowest)) {
        best = i;
        lowest = *id;
      }
    }
    if (best == pieces.size()) break;
    pieces[best] += pieces[best + 1];
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
  std::vector<std::int32_t> ids;
  for (const std::string& piece : pieces) ids.push_back(tokens.find(piece).value());
  return ids;
}

std::vector<std::int32_t> with_rules(const ranked_tokens& tokens, std::string_view word) {
  const auto byte_ids = tokens.byte_ids(0);
  const merge_table table(merges_of_ranked(tokens, byte_ids));
  std::vector<std::int32_t> symbols;
  for (const char c : word) symbols.push_back(byte_ids[static_cast<unsigned char>(c)]);
  symbols.resize(bpe_merger(table).merge(symbols));
  return symbols;
}

void add_bytes(ranked_tokens& tokens) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    ASSERT_EQ(tokens.add(byte, {&c, 1}), "");
  }
}

void add(ranked_tokens& tokens, std::initializer_list<std::string_view> more) {
  for (const std::string_view token : more) {
    ASSERT_EQ(tokens.add(static_cast<std::int32_t>(tokens.tokens.end_id()), token), "");
  }
}

TEST(MergesOfRanked, AreTheTwoPartsOfEachToken) {
  ranked_tokens tokens;
  add_bytes(tokens);
  add(tokens, {"bc", "ab", "abc"});
  const auto rules = merges_of_ranked(tokens, tokens.byte_ids(0));
  ASSERT_EQ(rules.size(), 3U);
  // The parts of "abc" are "a" and "bc", because "bc" has a lower rank than "ab" and merges first.
  EXPECT_EQ(rules[2].left, 'a');
  EXPECT_EQ(rules[2].right, 256);
  EXPECT_EQ(rules[2].result, 258);
}

TEST(MergesOfRanked, HaveNoneForWhatMergingNeverMakes) {
  ranked_tokens tokens;
  add_bytes(tokens);
  add(tokens, {"bc", "ab", "abcd"});  // "abcd" merges to a, bc and d
  EXPECT_EQ(merges_of_ranked(tokens, tokens.byte_ids(0)).size(), 2U);
  EXPECT_EQ(with_rules(tokens, "abcd"), naive(tokens, "abcd"));
}

// A part may have a higher rank than the whole token. Merging still produces the whole token.
TEST(MergesOfRanked, HaveThoseOfWholesThatComeBeforeTheirParts) {
  ranked_tokens tokens;
  add_bytes(tokens);
  add(tokens, {"abc", "ab", "abcd"});
  EXPECT_EQ(merges_of_ranked(tokens, tokens.byte_ids(0)).size(), 3U);
  EXPECT_EQ(with_rules(tokens, "xabcd"), (std::vector<std::int32_t>{'x', 258}));
}

// Merging by rules gives the same ids as merging by bytes. Ranks may be in any order, even in one
// that training never produces.
TEST(MergesOfRanked, GiveWhatMergingByBytesGives) {
  const auto seed = test::seed(1);
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  const auto word = [&](std::size_t most) {
    std::string text(1 + random() % most, ' ');
    for (char& c : text) c = static_cast<char>('a' + random() % 3);
    return text;
  };
  for (int round = 0; round < 300; ++round) {
    ranked_tokens tokens;
    add_bytes(tokens);
    for (std::uint64_t i = random() % 40; i > 0; --i) {
      const std::string token = word(6);
      if (tokens.find(token)) continue;
      add(tokens, {token});
    }
    for (int i = 0; i < 20; ++i) {
      const std::string text = word(30);
      ASSERT_EQ(with_rules(tokens, text), naive(tokens, text)) << text;
    }
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
