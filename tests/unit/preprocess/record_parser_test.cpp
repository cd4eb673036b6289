// SPDX-License-Identifier: Apache-2.0
#include "record/record_parser.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/exact_json.hpp"

namespace millrace::preprocess {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;

// Lines with every possible outcome. The tests of exact_json check what a parser must return for
// each line.
const std::vector<std::string> lines = {
    R"({"text":"a"})",
    R"( {"text":"a"} )",
    R"({"text":["a","","\u00e9"]})",
    R"({"text":[]})",
    R"({"text":""})",
    R"({"text":"\u0000\"\\\/\b\f\n\r\t\uffff\ud83d\ude00"})",
    "{\"text\":\"\u00e9\u4e2d\U0001F600\x7f\u2028\"}",
    R"({"id":1,"text":"a","meta":{"text":"b","n":[1,2.5,-3e10,true,null]}})",
    R"({"\u0074ext":"a"})",
    R"({"text":"a","text":"b"})",
    R"({"text":1,"text":"b"})",
    R"({"text":"a","text":1})",
    R"({"text":["a",1],"text":["b"]})",
    R"({"text":"a","n":NaN,"m":-Infinity,"o":1e400,"p":18446744073709551616})",
    R"({"text":"a","n":)" + std::string(4300, '9') + "}",
    R"({"text":"a","n":)" + std::string(4301, '9') + "}",
    R"({"text":"a","n":1.)" + std::string(5000, '9') + "}",
    R"({"text":"\ud83d"})",
    R"({"text":["\ud83d\ud83d\ude00","\udc00\ud800"],"other":"\ud800"})",
    R"({"text":"a","\ud800":1,"text\udc00":2})",
    "\uFEFF{\"text\":\"a\"}",
    "{\"text\":\"a\",\"b\":\"\xED\xA0\x80\"}",
    "{\"text\":\"\xFF\"}",
    "{\"text\":\"a\nb\"}",
    "{\"text\":\"a\"}\0"s,
    "{\"text\":\"a\"\f}",
    R"({"text":"a",})",
    R"({"text":"a"}})",
    R"({"text":"a"} 1)",
    R"({"text":"a")",
    R"({"text":"a)",
    R"({"text":"a","n":01})",
    R"({"text":"a","n":1.})",
    R"({"text":"a","n":+1})",
    R"({"text":"a","n":"\x"})",
    R"({'text':'a'})",
    R"({"text":"a"/**/})",
    R"(["text"])",
    R"("text")",
    "12",
    "true",
    "null",
    "",
    " ",
    "{}",
    R"({"Text":"a"})",
    R"({"text":null})",
    R"({"text":{"text":"a"}})",
    R"({"text":["a",["b"]]})",
};

// A line followed by exactly `record_parser::padding_bytes` bytes of the given value.
class padded_line {
 public:
  padded_line(std::string_view line, char padding)
      : size_(line.size()), bytes_(new char[size_ + record_parser::padding_bytes]) {
    std::ranges::copy(line, bytes_.get());
    std::fill_n(bytes_.get() + size_, record_parser::padding_bytes, padding);
  }
  operator std::string_view() const { return {bytes_.get(), size_}; }

 private:
  std::size_t size_;
  std::unique_ptr<char[]> bytes_;
};

void expect_both_agree(record_parser& parser, exact_json& exact, std::string_view line,
                       char padding) {
  const padded_line padded(line, padding);
  const auto fault = parser.parse(padded);
  const auto expected = exact.parse(line);
  const std::string shown = testing::PrintToString(std::string(line.substr(0, 200)));
  ASSERT_EQ(fault.has_value(), expected.has_value()) << shown;
  if (fault) {
    EXPECT_EQ(fault->kind, expected->kind) << shown;
    EXPECT_EQ(fault->offset_bytes, expected->offset_bytes) << shown;
    EXPECT_EQ(fault->what, expected->what) << shown;
    return;
  }
  for (std::size_t key = 0; key < exact.keys().size(); ++key) {
    ASSERT_THAT(parser.texts(key), testing::ElementsAreArray(exact.texts(key))) << shown;
  }
  ASSERT_EQ(parser.lone_surrogates(), exact.lone_surrogates()) << shown;
}

TEST(RecordParser, BothWaysAgreeWhateverStandsBehindTheLine) {
  record_parser parser({"text"});
  exact_json exact({"text"});
  for (const std::string& line : lines) {
    for (const char padding : {'\0', ' ', '"', '}', '1', '\\', '\xFF'}) {
      expect_both_agree(parser, exact, line, padding);
    }
  }
}

TEST(RecordParser, BothWaysAgreeOnEveryCutAndEveryChangedByte) {
  record_parser parser({"text", "b"});
  exact_json exact({"text", "b"});
  const std::string line =
      "{\"text\": [\"a\\u00e9\\ud83d\\ude00 \u00e9\", \"\"], \"n\": [-1.5e+3, true, null, {}], "
      "\"b\": "
      "\"\\\\\"}";
  for (std::size_t at = 0; at < line.size(); ++at) {
    expect_both_agree(parser, exact, line.substr(0, at), '"');
    std::string changed = line;
    for (unsigned byte = 0; byte < 256; ++byte) {
      changed[at] = static_cast<char>(byte);
      expect_both_agree(parser, exact, changed, '}');
    }
  }
}

// Both parsers agree on escaped surrogates. record_parser relies on simdjson never accepting half
// of a surrogate pair.
TEST(RecordParser, BothWaysAgreeOnEscapedSurrogates) {
  record_parser parser({"text"});
  exact_json exact({"text"});
  char line[64];
  for (const unsigned first : {0x0041U, 0xD7FFU, 0xD800U, 0xDBFFU, 0xDC00U, 0xDFFFU, 0xE000U}) {
    for (unsigned second = 0; second < 0x10000; second += second < 0xD700 ? 251 : 1) {
      const int size =
          std::snprintf(line, sizeof line, R"({"text":"\u%04x\u%04X"})", first, second);
      expect_both_agree(parser, exact, {line, static_cast<std::size_t>(size)}, '0');
    }
  }
}

TEST(RecordParser, BothWaysAgreeOnNestingAboutTheLimit) {
  record_parser parser({"text"});
  exact_json exact({"text"});
  for (std::size_t levels = max_nesting - 4; levels < max_nesting + 4; ++levels) {
    for (const std::string core : {"", "1", "{}", "[]"}) {
      const std::string line =
          R"({"text":"a","n":)" + std::string(levels, '[') + core + std::string(levels, ']') + "}";
      expect_both_agree(parser, exact, line, ' ');
    }
  }
  record_parser other({"text"});
  EXPECT_FALSE(other.parse(padded_line(
      R"({"text":"a","n":)" + std::string(994, '[') + std::string(994, ']') + "}", ' ')));
  EXPECT_TRUE(other.parse(padded_line(
      R"({"text":"a","n":)" + std::string(995, '[') + std::string(995, ']') + "}", ' ')));
}

TEST(RecordParser, LinesMayBeOfAnyLength) {
  record_parser parser({"text"});
  exact_json exact({"text"});
  const std::size_t sizes[] = {0, 1, 100, 16'000, 17'000, 100, 1'048'560, 1'048'570, 5'000'000, 7};
  for (const std::size_t size : sizes) {
    std::string text(size, 'a');
    if (size > 8) text.replace(size / 2, 2, "\\n");
    expect_both_agree(parser, exact, R"({"text":")" + text + R"("})", '"');
  }
}

TEST(RecordParser, TakesSeveralKeysInTheOrderInWhichTheyWereGiven) {
  record_parser parser({"b", "a", ""});
  const padded_line line(R"({"a":["1","2"],"c":0,"":"3","b":"\u0034"})", ' ');
  ASSERT_FALSE(parser.parse(line));
  EXPECT_THAT(parser.texts(0), ElementsAre("4"));
  EXPECT_THAT(parser.texts(1), ElementsAre("1", "2"));
  EXPECT_THAT(parser.texts(2), ElementsAre("3"));
  // One bad key makes the record bad.
  const auto fault = parser.parse(padded_line(R"({"a":"1","b":"2"})", ' '));
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->kind, fault_kind::missing_key);
  EXPECT_EQ(fault->offset_bytes, 16U);
  EXPECT_EQ(fault->what, R"(no key ""; the record has: a, b)");
}

TEST(RecordParser, CountsTheLoneSurrogatesOfTheLastRecordOnly) {
  record_parser parser({"text"});
  ASSERT_FALSE(parser.parse(padded_line(R"({"text":"\ud800a\udc00","b":"\ud800"})", ' ')));
  EXPECT_EQ(parser.lone_surrogates(), 2);
  EXPECT_THAT(parser.texts(0), ElementsAre("\uFFFDa\uFFFD"));
  ASSERT_FALSE(parser.parse(padded_line(R"({"text":"a"})", ' ')));
  EXPECT_EQ(parser.lone_surrogates(), 0);
}

TEST(RecordParser, CanBeMoved) {
  record_parser parser({"text"});
  const padded_line line(R"({"text":"a"})", ' ');
  ASSERT_FALSE(parser.parse(line));
  record_parser moved(std::move(parser));
  EXPECT_THAT(moved.texts(0), ElementsAre("a"));
  EXPECT_FALSE(moved.parse(line));
}

// Keys may be paths, which work like record["meta"]["text"] in Python.
TEST(RecordParser, FollowsPaths) {
  const std::vector<text_key> keys = {key_of_path("meta.text"), plain_key("meta.text"),
                                      key_of_path("meta.more.list")};
  record_parser parser{std::span<const text_key>(keys)};
  exact_json exact{std::span<const text_key>(keys)};
  for (
      const std::string line :
      {R"({"meta":{"text":"a","more":{"list":["b","c"]}},"meta.text":"d"})",
       R"({"meta":7,"meta.text":"d","meta":{"text":[],"text":"a","more":1,"more":{"list":["b","c"]}}})",
       R"( {"x":{"meta":{"text":1}},"meta.text":"d","meta":{"more":{"list":["b","c"],"o":{"list":1}},"te\u0078t":"a"}})"}) {
    const std::string padded = line + std::string(record_parser::padding_bytes, '}');
    EXPECT_FALSE(parser.parse(std::string_view(padded).substr(0, line.size()))) << line;
    EXPECT_FALSE(exact.parse(line)) << line;
    for (const auto texts : {parser.texts(0), exact.texts(0)}) EXPECT_THAT(texts, ElementsAre("a"));
    for (const auto texts : {parser.texts(1), exact.texts(1)}) EXPECT_THAT(texts, ElementsAre("d"));
    for (const auto texts : {parser.texts(2), exact.texts(2)}) {
      EXPECT_THAT(texts, ElementsAre("b", "c"));
    }
  }
}

TEST(RecordParser, NamesWhatAPathMeets) {
  const std::vector<text_key> keys = {key_of_path("a.b.c")};
  record_parser parser{std::span<const text_key>(keys)};
  const std::tuple<std::string, fault_kind, std::size_t, std::string> cases[] = {
      {R"({"a":{"b":{"c":1}}})", fault_kind::wrong_type, 15,
       "key \"a.b.c\" holds a number, expected a string or a list of strings"},
      {R"({"a":{"b":[{"c":"x"}]}})", fault_kind::wrong_type, 10,
       "key \"b\", on the way to key \"a.b.c\", holds a list, expected an object"},
      {R"({"a":"x"})", fault_kind::wrong_type, 5,
       "key \"a\", on the way to key \"a.b.c\", holds a string, expected an object"},
      {R"({"a":{"b":{"c":"x"},"b":null}})", fault_kind::wrong_type, 24,
       "key \"b\", on the way to key \"a.b.c\", holds null, expected an object"},
      {R"({"a":{"b":{"c":"x"}},"a":{}})", fault_kind::missing_key, 27,
       "no key \"a.b.c\": the record has \"a\", but not all keys below it"},
      {R"({"a":{"c":{"b":"x"}},"b":{"c":"x"},"c":"x"})", fault_kind::missing_key, 42,
       "no key \"a.b.c\": the record has \"a\", but not all keys below it"},
      {R"({"a.b.c":"x"})", fault_kind::missing_key, 12, "no key \"a.b.c\"; the record has: a.b.c"}};
  for (const auto& [line, kind, offset, what] : cases) {
    const std::string padded = line + std::string(record_parser::padding_bytes, ' ');
    const auto fault = parser.parse(std::string_view(padded).substr(0, line.size()));
    ASSERT_TRUE(fault) << line;
    EXPECT_EQ(fault->kind, kind) << line;
    EXPECT_EQ(fault->offset_bytes, offset) << line;
    EXPECT_EQ(fault->what, what) << line;
  }
}

}  // namespace
}  // namespace millrace::preprocess
