// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include <millrace/chat/chat_template.hpp>
#include <millrace/chat/value.hpp>
#include <millrace/error.hpp>

namespace millrace::chat {
namespace {

std::string shown(std::string_view json, const char* source) {
  value_pool pool;
  const dict_entry entry{value("v"), parse_json(json, pool)};
  return chat_template::parse(source, "t").render(pool.dict({&entry, 1})).text;
}

TEST(ChatValues, PrintAsInPython) {
  const std::pair<const char*, const char*> cases[] = {
      {"null", "None"},
      {"[true, false, null]", "[True, False, None]"},
      {"{\"a\": 1, \"b\": [\"x\", \"it's\", \"q\\\"'\"]}",
       "{'a': 1, 'b': ['x', \"it's\", 'q\"\\'']}"},
      {"123456789012345678901234567890", "123456789012345678901234567890"},
      {"[-0, -0.0, 1e16, 1e15, 1e-4, 1e-5, 0.1, 1e400, 1.5e300]",
       "[0, -0.0, 1e+16, 1000000000000000.0, 0.0001, 1e-05, 0.1, inf, 1.5e+300]"},
      {"[NaN, -Infinity]", "[nan, -inf]"},
      {"[\"\\n\\t\\u0001\\u00a0\\u00e9\\u2028\"]", "['\\n\\t\\x01\\xa0\u00e9\\u2028']"},
      {"\"\\ud83d\\ude42\"", "\U0001F642"},
      {"{\"a\": 1, \"b\": 2, \"a\": 3}", "{'a': 3, 'b': 2}"},
      {"[]", "[]"},
  };
  for (const auto& [json, text] : cases) EXPECT_EQ(shown(json, "{{ v }}"), text) << json;
}

TEST(ChatValues, BecomeJsonAsInPython) {
  EXPECT_EQ(shown("{\"a\": [1, 2.0, null, true], \"b\": {}, \"c\": []}", "{{ v | tojson }}"),
            "{\"a\": [1, 2.0, null, true], \"b\": {}, \"c\": []}");
  EXPECT_EQ(shown("{\"a\": [1, {}], \"b\": \"x\"}", "{{ v | tojson(indent=2) }}"),
            "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": \"x\"\n}");
  EXPECT_EQ(
      shown("{\"b\": 1, \"a\": 2}", "{{ v | tojson(sort_keys=true, separators=(',', ':')) }}"),
      "{\"a\":2,\"b\":1}");
  EXPECT_EQ(shown("\"<\\u00e9\\u0001\\n\\\"\\\\\"", "{{ v | tojson }}"),
            "\"<\u00e9\\u0001\\n\\\"\\\\\"");
  EXPECT_EQ(shown("\"\\ud83d\\ude42\\u007f\"", "{{ v | tojson(ensure_ascii=true) }}"),
            "\"\\ud83d\\ude42\\u007f\"");
  EXPECT_EQ(shown("[NaN, Infinity, 99999999999999999999]", "{{ v | tojson }}"),
            "[NaN, Infinity, 99999999999999999999]");
}

TEST(ChatValues, OfLargeDictsAreFoundByName) {
  std::string json = "{";
  for (int i = 0; i < 1000; ++i)
    json += "\"k" + std::to_string(i % 900) + "\": " + std::to_string(i) + ", ";
  json += "\"end\": 0}";
  EXPECT_EQ(shown(json, "{{ v.k5 }} {{ v['k899'] }} {{ v.k900 is defined }} {{ v | length }}"),
            "905 899 False 901");
}

TEST(ChatValues, RefuseWhatIsNotJson) {
  value_pool pool;
  for (const std::string text :
       {"", "nul", "[1,]", "{\"a\" 1}", "{1: 2}", "01", "1.", "+1", "\"a", "\"\x01\"", "\"\\x\"",
        "\"\\u12\"", "\"\\ud800\"", "\"\xff\"", "1 2", "[", "{", "\"\\", "-"}) {
    // A fresh allocation, so that ASan sees a read beyond the text.
    const std::vector<char> copy(text.begin(), text.end());
    EXPECT_THROW(parse_json({copy.data(), copy.size()}, pool), format_error) << text;
  }
  EXPECT_THROW(parse_json(std::string(300, '['), pool), format_error);
  EXPECT_THROW(parse_json(std::string(5000, '1'), pool), format_error);
}

}  // namespace
}  // namespace millrace::chat
