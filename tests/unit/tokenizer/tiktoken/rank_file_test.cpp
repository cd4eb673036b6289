// SPDX-License-Identifier: Apache-2.0
#include "tiktoken/rank_file.hpp"

#include <gtest/gtest.h>

#include <string>

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
}  // namespace millrace::tokenizer::detail
