// SPDX-License-Identifier: Apache-2.0
#include "tiktoken/list_json.hpp"

#include <gtest/gtest.h>

#include <string>

namespace millrace::tokenizer::detail {
namespace {

TEST(ListJsonEnd, IsTheSizeOfWhatIsWhole) {
  for (const std::string json : {"1", "[]", "{}", " [ ] ",
                                 R"({"a": [1, {"b": "c\"]"}, null, []], "d": {}})", "[[[]], {}]"}) {
    EXPECT_EQ(list_json_end(json), json.size()) << json;
  }
}

TEST(ListJsonEnd, IsTheFirstByteThatCannotBeThere) {
  EXPECT_EQ(list_json_end("[1, 2] 3"), 7U);
  EXPECT_EQ(list_json_end("[1, ]"), 4U);
  EXPECT_EQ(list_json_end("[1}"), 2U);
  EXPECT_EQ(list_json_end(R"({"a" 1})"), 5U);
  EXPECT_EQ(list_json_end(R"({"a": 1,})"), 8U);
  EXPECT_EQ(list_json_end("{1: 2}"), 1U);
  EXPECT_EQ(list_json_end("[\"a\nb\"]"), 3U);
  EXPECT_EQ(list_json_end("[\"\xff\"]"), 2U);
  EXPECT_EQ(list_json_end(""), 0U);
}

// A cut-off copy ends where more was expected.
TEST(ListJsonEnd, IsTheSizeOfEveryTruncation) {
  const std::string json = R"([{"rank": 0, "token_bytes": "AA==", "token_str": "\u0000"}, [-1.5]])";
  for (std::size_t size = 0; size < json.size(); ++size) {
    EXPECT_EQ(list_json_end(json.substr(0, size)), size);
  }
}

TEST(ListJsonEnd, TakesAnyDepth) {
  const std::string deep(1000000, '[');
  EXPECT_EQ(list_json_end(deep), deep.size());
  EXPECT_EQ(list_json_end(deep + std::string(1000000, ']')), 2000000U);
}

TEST(ListJsonEntry, IsWhereTheEntryBegins) {
  const std::string json = R"( [ {"a": "],"} , [1], "x" ])";
  EXPECT_EQ(list_json_entry(json, 0), 3U);
  EXPECT_EQ(list_json_entry(json, 1), 17U);
  EXPECT_EQ(list_json_entry(json, 2), 22U);
  EXPECT_EQ(list_json_entry(json, 3), json.size());
}

}  // namespace
}  // namespace millrace::tokenizer::detail
