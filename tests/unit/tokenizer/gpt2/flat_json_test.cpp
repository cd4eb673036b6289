// SPDX-License-Identifier: Apache-2.0
#include "gpt2/flat_json.hpp"

#include <gtest/gtest.h>

#include <string>

namespace millrace::tokenizer::detail {
namespace {

const std::string whole = R"( {"a": 1, "b\"}": -2e3 ,"é":"x" , "\\": null} )";

TEST(FlatJson, FindsWhereAnEntryBegins) {
  EXPECT_EQ(flat_json_entry(whole, 0), whole.find("\"a\""));
  EXPECT_EQ(flat_json_entry(whole, 1), whole.find("\"b\\"));
  EXPECT_EQ(flat_json_entry(whole, 2), whole.find("\"é"));
  EXPECT_EQ(flat_json_entry(whole, 3), whole.find("\"\\\\"));
}

TEST(FlatJson, FindsTheEndOfEveryTruncation) {
  EXPECT_EQ(flat_json_end(whole), whole.size());
  const std::size_t close = whole.rfind('}');
  for (std::size_t size = 0; size <= close; ++size) {
    const std::size_t end = flat_json_end(whole.substr(0, size));
    EXPECT_LE(end, size);
    EXPECT_GE(end + 1, size) << size;  // the half of a character is the fault, not the end
  }
}

TEST(FlatJson, StopsAtTheByteThatCannotBe) {
  EXPECT_EQ(flat_json_end("[1]"), 0U);
  EXPECT_EQ(flat_json_end("{\"a\":1 \"b\":2}"), 7U);
  EXPECT_EQ(flat_json_end("{\"a\":1,}"), 7U);
  EXPECT_EQ(flat_json_end("{\"a\":[1]}"), 5U);
  EXPECT_EQ(flat_json_end("{\"a\":{}}"), 5U);
  EXPECT_EQ(flat_json_end("{\"a\n\":1}"), 3U);
  EXPECT_EQ(flat_json_end("{\"a\xC3\":1}"), 3U);             // half a character
  EXPECT_EQ(flat_json_end("{\"\xED\xA0\x80\":1}"), 2U);      // a surrogate
  EXPECT_EQ(flat_json_end("{\"\xC0\x80\":1}"), 2U);          // longer than it need be
  EXPECT_EQ(flat_json_end("{\"\xF4\x90\x80\x80\":1}"), 2U);  // beyond U+10FFFF
  EXPECT_EQ(flat_json_end("{\"a\":1}x"), 7U);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
