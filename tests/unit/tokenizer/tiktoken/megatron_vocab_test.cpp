// SPDX-License-Identifier: Apache-2.0
#include "tiktoken/megatron_vocab.hpp"

#include <gtest/gtest.h>

#include <string>

#include "support/rank_vocabulary.hpp"

namespace millrace::tokenizer::detail {
namespace {

using test::rank_vocabulary;

std::string json_fault(const std::string& json, std::int32_t end_id = 256) {
  try {
    ranked_tokens tokens;
    parse_megatron_vocab(json, 0, end_id, tokens);
    return "accepted";
  } catch (const format_error& e) {
    return e.what();
  }
}

std::string entry(const std::string& rank, const std::string& token_bytes) {
  return R"([{"rank": )" + rank + R"(, "token_bytes": )" + token_bytes + R"(, "token_str": ""}])";
}

TEST(ParseMegatronVocab, NumbersTokensBehindTheSpecialOnes) {
  ranked_tokens tokens;
  parse_megatron_vocab(rank_vocabulary({"ab", "\xff\xfe"}).megatron_json(), 1000, 1258, tokens);
  EXPECT_EQ(tokens.tokens.count(), 258U);
  EXPECT_EQ(tokens.find("a"), 1000 + 'a');
  EXPECT_EQ(tokens.find("ab"), 1256);
  EXPECT_EQ(tokens.find("\xff\xfe"), 1257);
}

TEST(ParseMegatronVocab, LeavesOutWhatTheVocabularyHasNoRoomFor) {
  ranked_tokens tokens;
  parse_megatron_vocab(rank_vocabulary({"ab", "cd"}).megatron_json(), 10, 267, tokens);
  EXPECT_EQ(tokens.find("ab"), 266);
  EXPECT_EQ(tokens.find("cd"), std::nullopt);
}

TEST(ParseMegatronVocab, ReadsKeysInAnyOrderAndEscapedSlashes) {
  std::string json = rank_vocabulary({}).megatron_json();
  json.replace(json.find("\"/w==\""), 6, "\"\\/w==\"");
  json.replace(json.find("{\"rank\": 0, "), 12, "{");
  json.insert(json.find('}'), ", \"rank\": 0");
  EXPECT_EQ(json_fault(json), "accepted");
}

TEST(ParseMegatronVocab, SaysWhatIsWrongAndWhere) {
  EXPECT_EQ(json_fault("{}"), "expected a JSON list of tokens (at byte 0)");
  EXPECT_EQ(json_fault("[]", 3),
            "the file has 0 tokens, fewer than the 3 that --vocab-size leaves besides the special "
            "tokens (at byte 2)");
  const std::string shape =
      "token 0: expected an object of \"rank\", \"token_bytes\" and \"token_str\" alone (at byte "
      "1)";
  EXPECT_EQ(json_fault("[1]"), shape);
  EXPECT_EQ(json_fault(R"([{"rank": 0, "token_bytes": "AA=="}])"), shape);
  EXPECT_EQ(json_fault(R"([{"rank": 0, "token_bytes": "AA==", "token_str": "", "x": 1}])"), shape);
  EXPECT_EQ(json_fault(entry("0", "7")), shape);
  EXPECT_EQ(json_fault(entry("1", "\"AA==\"")),
            "token 0: expected rank 0, the place in the list (at byte 1)");
  EXPECT_EQ(json_fault(entry("-1", "\"AA==\"")),
            "token 0: expected rank 0, the place in the list (at byte 1)");
  EXPECT_EQ(json_fault(entry("0", "\"A\"")), "token 0: expected base64, found 'A' (at byte 1)");
  EXPECT_EQ(json_fault(entry("0", "\"AQ==\"")),
            "token 0: expected the byte 0, found '\\x01': the first 256 tokens are the bytes (at "
            "byte 1)");
}

TEST(ParseMegatronVocab, NamesTheEntryAtFault) {
  const std::string json = rank_vocabulary({"ab", "ab"}).megatron_json();
  const std::string place = std::to_string(json.rfind('{'));
  EXPECT_EQ(json_fault(json, 258),
            "token 257: token 'ab' occurs twice, as 256 and 257 (at byte " + place + ")");
}

TEST(ParseMegatronVocab, RejectsEveryTruncation) {
  const std::string json = rank_vocabulary({}).megatron_json();
  ASSERT_EQ(json_fault(json), "accepted");
  for (std::size_t size = 0; size < json.size(); size += 7) {
    const std::string fault = json_fault(json.substr(0, size));
    EXPECT_TRUE(fault.starts_with("not JSON: ") &&
                fault.ends_with("(at byte " + std::to_string(size) + ")"))
        << size << ": " << fault;
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
