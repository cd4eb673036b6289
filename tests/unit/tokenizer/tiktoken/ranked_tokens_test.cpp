// SPDX-License-Identifier: Apache-2.0

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "bpe/bpe_merger.hpp"
#include "bpe/merge_table.hpp"
#include "support/seed.hpp"
#include "tiktoken/ranked_tokens.hpp"

namespace millrace::tokenizer::detail {
namespace {

std::string file_fault(const std::string& text) {
  try {
    ranked_tokens tokens;
    parse_rank_file(text, tokens);
    return "accepted";
  } catch (const format_error& e) {
    return e.what();
  }
}

TEST(ParseRankFile, ReadsTokensAndRanks) {
  ranked_tokens tokens;
  parse_rank_file("YQ== 0\nYWI= 7\n/w== 1\n", tokens);
  EXPECT_EQ(tokens.tokens.count(), 3U);
  EXPECT_EQ(tokens.tokens.bytes(0), "a");
  EXPECT_EQ(tokens.tokens.bytes(1), "\xff");
  EXPECT_EQ(tokens.tokens.bytes(7), "ab");
  EXPECT_FALSE(tokens.tokens.has(2));
  EXPECT_EQ(tokens.find("ab"), 7);
}

TEST(ParseRankFile, TakesTheLineEndsThatPythonTakes) {
  for (const std::string text :
       {"YQ== 0\r\nYg== 1\r\n", "YQ== 0\nYg== 1", "\nYQ== 0\n\r\nYg== 1\n\n"}) {
    ranked_tokens tokens;
    parse_rank_file(text, tokens);
    EXPECT_EQ(tokens.find("a"), 0);
    EXPECT_EQ(tokens.find("b"), 1);
  }
}

TEST(ParseRankFile, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(file_fault(""),
            "the file has no line, expected tokens in base64 with their ranks (at byte 0)");
  EXPECT_EQ(file_fault("YQ== 0\nYg==\n"),
            "line 2: expected a token in base64, a space and its rank, found 'Yg==' (at byte 7)");
  EXPECT_EQ(file_fault("YQ== 0\nYg== "), "line 2: expected a rank, found '' (at byte 7)");
  EXPECT_EQ(file_fault("Y-== 0\n"), "line 1: expected base64, found 'Y-==' (at byte 0)");
  EXPECT_EQ(file_fault("YQ== 0 1\n"), "line 1: expected a rank, found '0 1' (at byte 0)");
  EXPECT_EQ(file_fault("YQ== x\n"), "line 1: expected a rank, found 'x' (at byte 0)");
  EXPECT_EQ(file_fault("YQ== -1\n"), "line 1: rank '-1' is outside 0..4194303 (at byte 0)");
  EXPECT_EQ(file_fault("YQ== 4194304\n"),
            "line 1: rank '4194304' is outside 0..4194303 (at byte 0)");
  EXPECT_EQ(file_fault("YQ== 99999999999999999999\n"),
            "line 1: rank '99999999999999999999' is outside 0..4194303 (at byte 0)");
  EXPECT_EQ(file_fault("YQ== 3\nYg== 3\n"),
            "line 2: rank 3 occurs twice, for 'a' and 'b' (at byte 7)");
  EXPECT_EQ(file_fault("YQ== 3\nYQ== 4\n"),
            "line 2: token 'a' occurs twice, as 3 and 4 (at byte 7)");
  EXPECT_EQ(file_fault(" 3\n"), "line 1: a token is empty (at byte 0)");
  EXPECT_EQ(file_fault("YQ== 0\r"), "line 1: expected a rank, found '0\\x0d' (at byte 0)");
  EXPECT_EQ(file_fault("PK\x03\x04 junk"),
            "line 1: expected base64, found 'PK\\x03\\x04' (at byte 0)");
}

TEST(ParseRankFile, RefusesTokensThatNoVocabularyHas) {
  const std::string longest(4 * 1365 + 4, 'Y');  // base64 of 4098 bytes
  EXPECT_EQ(file_fault(longest + " 0\n"),
            "line 1: a token of 4098 bytes, expected at most 4096 (at byte 0)");
}

TEST(RankedTokens, NameTheByteThatIsMissing) {
  ranked_tokens tokens;
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (byte != 0xC0) {
      ASSERT_EQ(tokens.add(byte, {&c, 1}), "");
    }
  }
  try {
    (void)tokens.byte_ids(123);
    ADD_FAILURE() << "accepted";
  } catch (const format_error& e) {
    EXPECT_STREQ(e.what(), "the vocabulary has no token for the single byte 192 (at byte 123)");
  }
}

}  // namespace

namespace {

// Implements the definition of tiktoken. Considers all adjacent pairs of pieces whose joined bytes
// are a token. Merges the pair with the lowest rank; on ties, the leftmost pair.
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

// Merging by rules gives the same ids as merging by bytes. Ranks may be in any order, even in an
// order that training never produces.
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
