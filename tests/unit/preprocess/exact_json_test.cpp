// SPDX-License-Identifier: Apache-2.0
#include "record/exact_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace millrace::preprocess {
namespace {

using namespace std::string_literals;
using testing::ElementsAre;

// Parses a copy with nothing after it, so that a sanitizer detects reads past the end.
std::optional<record_fault> parse(exact_json& json, std::string_view line) {
  const auto copy = std::make_unique<char[]>(line.size());
  std::ranges::copy(line, copy.get());
  return json.parse({copy.get(), line.size()});  // texts() returns its own copies
}

std::string repeat(std::string_view what, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += what;
  return out;
}

std::string join(std::initializer_list<std::string_view> parts) {
  std::string out;
  for (const std::string_view part : parts) out += part;
  return out;
}

std::string printable(std::string_view line) {
  return testing::PrintToString(std::string(line.substr(0, 200)));
}

TEST(ExactJson, AcceptsTheValuesThatPythonAccepts) {
  const std::string values[] = {
      "0", "-0", "-1", "120", "0.5", "-0.0", "1e5", "1E+5", "1e-5", "0e0", "1.25E-007",
      // numbers that become infinity or zero, or do not fit into 64 bits
      "1e400", "-1e400", "1e-400", "18446744073709551616", "-9223372036854775809",
      std::string(4300, '9'), "-" + std::string(4300, '9'), std::string(5000, '9') + ".5",
      "1." + std::string(5000, '0'), std::string(5000, '9') + "e1", "1e" + std::string(5000, '9'),
      // NaN and infinities, which JSON lacks, and the JSON constants
      "NaN", "Infinity", "-Infinity", "true", "false", "null",
      // strings
      R"("")", R"("\"\\\/\b\f\n\r\t")", R"("\u0000\uFFFF\ud83d\uDE00")", R"("\ud800")", "\"\x7f\"",
      "\"\u2028\uFEFF\"", R"("//'")",
      // structure
      "[]", "{}", "[ ]", "{\t}", "[[],{}]", R"({"":{"":[]}})", R"({"a":1,"a":2})", "[ 1\t,\r\n2 ]",
      "\n{ \"a\" :\t1 , \"b\":2 } "};
  exact_json json({"text"});
  for (const std::string& value : values) {
    const std::string line = R"({"text":"x","other":)" + value + "}";
    const auto fault = parse(json, line);
    EXPECT_FALSE(fault) << printable(line) << ": " << fault->what;
    // The value is also accepted as an element of a list.
    EXPECT_FALSE(parse(json, join({R"({"other":[)", value, ",", value, R"(],"text":"x"})"})))
        << printable(line);
  }
}

struct refused_line {
  std::string line;
  std::size_t offset_bytes;
  std::string what;
};

void expect_refused(const std::vector<refused_line>& cases) {
  exact_json json({"text"});
  for (const refused_line& each : cases) {
    const auto fault = parse(json, each.line);
    ASSERT_TRUE(fault) << printable(each.line);
    EXPECT_EQ(fault->kind, fault_kind::invalid_json) << printable(each.line);
    EXPECT_EQ(fault->offset_bytes, each.offset_bytes) << printable(each.line);
    EXPECT_EQ(fault->what, each.what) << printable(each.line);
  }
}

TEST(ExactJson, RefusesBrokenStructure) {
  const std::string end = ", found the end of the line";
  expect_refused({
      {"", 0, "expected a value" + end},
      {"  ", 2, "expected a value" + end},
      {"{", 1, "expected a key in double quotes or '}'" + end},
      {"{x", 1, "expected a key in double quotes or '}'"},
      {"{'a':1}", 1, "expected a key in double quotes or '}'"},
      {R"({"a")", 4, "expected ':' after a key" + end},
      {R"({"a" 1})", 5, "expected ':' after a key"},
      {R"({"a":)", 5, "expected a value" + end},
      {R"({"a":})", 5, "expected a value"},
      {R"({"a":1)", 6, "expected ',' or '}' after a value" + end},
      {R"({"a":1 "b":2})", 7, "expected ',' or '}' after a value"},
      {R"({"a":1])", 6, "expected ',' or '}' after a value"},
      {R"({"a":1,})", 7, "expected a key in double quotes after ','"},
      {R"({"a":1,2})", 7, "expected a key in double quotes after ','"},
      {R"({"a":1}})", 7, "data after the value"},
      {R"({"a":1} {})", 8, "data after the value"},
      {"{}\0"s, 2, "data after the value"},
      {"[", 1, "expected a value" + end},
      {"[1", 2, "expected ',' or ']' after a value" + end},
      {"[1}", 2, "expected ',' or ']' after a value"},
      {"[1 2]", 3, "expected ',' or ']' after a value"},
      {"[1,]", 3, "expected a value"},
      {"[,1]", 1, "expected a value"},
      {"]", 0, "expected a value"},
      {"[1/**/]", 2, "expected ',' or ']' after a value"},
      {"//\n{}", 0, "expected a value"},
      {"\uFEFF{}", 0, "expected a value"},  // a byte order mark is refused
      {"[\u00A01]", 1, "expected a value"},
      {"[\f1]", 1, "expected a value"},
  });
}

TEST(ExactJson, RefusesBrokenScalars) {
  const std::string end = ", found the end of the line";
  expect_refused({
      {"[01]", 1, "a number with a leading zero"},
      {"[-00]", 1, "a number with a leading zero"},
      {"[1.]", 3, "expected a digit after '.'"},
      {"1.", 2, "expected a digit after '.'" + end},
      {"[1.e5]", 3, "expected a digit after '.'"},
      {"[.5]", 1, "expected a value"},
      {"[-]", 2, "expected a digit after '-'"},
      {"-", 1, "expected a digit after '-'" + end},
      {"[-.5]", 2, "expected a digit after '-'"},
      {"[-NaN]", 2, "expected a digit after '-'"},
      {"[-Inf]", 2, "expected a value"},
      {"[1e]", 3, "expected a digit in an exponent"},
      {"[1e+]", 4, "expected a digit in an exponent"},
      {"1E-", 3, "expected a digit in an exponent" + end},
      {"[0x10]", 2, "expected ',' or ']' after a value"},
      {"[1_000]", 2, "expected ',' or ']' after a value"},
      {"[tru]", 1, "expected a value"},
      {"tru", 0, "expected a value"},
      {"[True]", 1, "expected a value"},
      {"[truer]", 5, "expected ',' or ']' after a value"},
      {"[nan]", 1, "expected a value"},
      {"[\u0661]", 1, "expected a value"},
      {"[" + std::string(4301, '1') + "]", 1, "an integer of more than 4300 digits"},
      {"[-" + std::string(4301, '1') + "]", 1, "an integer of more than 4300 digits"},
  });
}

TEST(ExactJson, RefusesBrokenStringsAlsoInValuesThatNobodyAskedFor) {
  const std::vector<refused_line> strings = {
      {R"("abc)", 0, "a string without its closing quote"},
      {R"("a\"b)", 0, "a string without its closing quote"},
      {"\"a\nb\"", 2, "a control character in a string"},
      {"\"a\tb\"", 2, "a control character in a string"},
      {"\"\0\""s, 1, "a control character in a string"},
      {"\"sixteen letters.\x1f\"", 17, "a control character in a string"},
      {R"("a\xb")", 2, "a backslash that begins no escape"},
      {R"("\'")", 1, "a backslash that begins no escape"},
      {R"("\0")", 1, "a backslash that begins no escape"},
      {R"("\U0041")", 1, "a backslash that begins no escape"},
      {R"("ab\)", 3, "a backslash that begins no escape"},
      {R"("\u12")", 1, "expected four hexadecimal digits after \\u"},
      {R"("\u12g4")", 1, "expected four hexadecimal digits after \\u"},
      {R"("\u)", 1, "expected four hexadecimal digits after \\u"},
      {R"("\u+123")", 1, "expected four hexadecimal digits after \\u"},
      {R"("\ud83d\u12")", 7, "expected four hexadecimal digits after \\u"},
      {R"("\ud83d\udx00")", 7, "expected four hexadecimal digits after \\u"},
      {R"("\ud83d\q")", 7, "a backslash that begins no escape"},
  };
  for (const std::string before : {R"({"text":)", R"({"skipped":)", R"({"text":["x",)", R"({)"}) {
    std::vector<refused_line> cases = strings;
    for (refused_line& each : cases) {
      each.line = before + each.line;
      each.offset_bytes += before.size();
    }
    expect_refused(cases);
  }
}

TEST(ExactJson, NestsAsDeepAsPython) {
  exact_json json({"text"});
  const auto nested = [](std::size_t levels, const std::string& open, const std::string& close) {
    return R"({"text":"x","nest":)" + repeat(open, levels) + "1" + repeat(close, levels) + "}";
  };
  const std::size_t inner = max_nesting - 1;  // the record itself is one level
  EXPECT_FALSE(parse(json, nested(inner, "[", "]")));
  EXPECT_FALSE(parse(json, nested(inner, R"({"text":)", "}")));
  EXPECT_FALSE(parse(json, nested(inner / 2, R"([{"text":)", "}]")));
  expect_refused(
      {{nested(inner + 1, "[", "]"), 19 + inner, "lists and objects nested deeper than 995 levels"},
       {nested(inner + 1, R"({"":)", "}"), 19 + 4 * inner,
        "lists and objects nested deeper than 995 levels"}});
  // An empty list counts as a level too. Lists that are never closed give a fault, not a crash.
  EXPECT_FALSE(
      parse(json, R"({"text":"x","nest":)" + repeat("[", inner) + repeat("]", inner) + "}"));
  EXPECT_TRUE(parse(json, repeat("[", 1'000'000)));
}

TEST(ExactJson, NamesTheFirstByteThatIsNoUtf8) {
  // The bytes of each case follow `start`. The expected offset counts from the end of `start`.
  const std::vector<std::pair<std::string, std::size_t>> cases = {
      {"\x80", 0},
      {"a\xBF", 1},
      {"\xC0\x80", 0},
      {"\xC1\xBF", 0},
      {"\xC3", 0},
      {"\xC3(", 0},
      {"\xE0\x80\x80", 0},
      {"\xE0\x9F\xBF", 0},
      {"\xED\xA0\x80", 0},
      {"\xED\xBF\xBF", 0},
      {"\xE4\xB8", 0},
      {"\xE4\xB8(", 0},
      {"\xEF\xBF\xBF", 3},
      {"\xF0\x80\x80\x80", 0},
      {"\xF0\x8F\xBF\xBF", 0},
      {"\xF0\x9F\x98", 0},
      {"\xF4\x90\x80\x80", 0},
      {"\xF4\x8F\xBF\xBF", 4},
      {"\xF5\x80\x80\x80", 0},
      {"\xFF", 0},
  };
  exact_json json({"text"});
  const std::string start = "{\"text\":\"\u00e9";
  for (const auto& [bytes, offset] : cases) {
    for (const std::string& end : {""s, "\"}"s, "\xFF"s, repeat("\xFF and more ", 20)}) {
      const std::string line = join({start, bytes, end});
      const auto fault = parse(json, line);
      if (!fault || fault->kind != fault_kind::invalid_utf8) {
        EXPECT_EQ(offset, bytes.size()) << printable(line);  // the bytes were valid UTF-8
        continue;
      }
      EXPECT_EQ(fault->offset_bytes, start.size() + offset) << printable(line);
      EXPECT_EQ(fault->what, "not UTF-8");
    }
  }
  // Invalid UTF-8 is reported before any other fault, wherever that fault is.
  EXPECT_EQ(parse(json, "{,\xFF")->kind, fault_kind::invalid_utf8);
}

struct taken {
  std::string line;
  std::vector<std::string> texts;
  std::int64_t lone_surrogates = 0;
};

TEST(ExactJson, TakesTexts) {
  const std::vector<taken> cases = {
      {R"({"text":""})", {""}},
      {R"({"text":[]})", {}},
      {R"({"text":["a","","b"]})", {"a", "", "b"}},
      {R"( { "a" : {"text":"no"} , "text" : "yes" , "b" : ["no"] } )", {"yes"}},
      {"{\"text\":\"\u00e9\u4e2d\U0001F600\x7f\"}", {"\u00e9\u4e2d\U0001F600\x7f"}},
      {R"({"text":"\"\\\/\b\f\n\r\t"})", {"\"\\/\b\f\n\r\t"}},
      {R"({"text":"\u0000a\u007f\u0080\u07ff\u0800\uffff\uFfFd"})",
       {"\0a\x7f\u0080\u07ff\u0800\uffff\ufffd"s}},
      // escaped keys match; if a key occurs twice, the last value counts, whatever the others were
      {R"({"\u0074e\u0078t":"a"})", {"a"}},
      {R"({"text":"a","text":"b"})", {"b"}},
      {R"({"text":["a","b"],"\u0074ext":["c"]})", {"c"}},
      {R"({"text":1,"text":"b"})", {"b"}},
      {R"({"text":["a",null],"text":"b"})", {"b"}},
      {R"({"text":{"text":["a"]},"text":["b"]})", {"b"}},
      {R"({"text":"\ud800","text":"b"})", {"b"}},
      // surrogates
      {R"({"text":"\ud83d\ude00\uD83D\uDE00"})", {"\U0001F600\U0001F600"}},
      {R"({"text":"\ud83d"})", {"\uFFFD"}, 1},
      {R"({"text":"\ud83d\u0041"})", {"\uFFFDA"}, 1},
      {R"({"text":"\ud83dA\ude00"})", {"\uFFFDA\uFFFD"}, 2},
      {R"({"text":"\ud83d\ud83d\ude00"})", {"\uFFFD\U0001F600"}, 1},
      {R"({"text":"\udc00\ud800"})", {"\uFFFD\uFFFD"}, 2},
      {R"({"text":"\ud83d\\ude00"})", {"\uFFFD\\ude00"}, 1},
      {R"({"text":"\ud83d\n"})", {"\uFFFD\n"}, 1},
      {R"({"text":"\ud800\udbff\uDFFF\ue000"})", {"\uFFFD\U0010FFFF\ue000"}, 1},
      {R"({"text":["\ud800","\udc00"]})", {"\uFFFD", "\uFFFD"}, 2},
      {R"({"a":"\ud800","\udc00":1,"text":"b"})", {"b"}},  // surrogates elsewhere are not counted
  };
  exact_json json({"text"});
  for (const taken& each : cases) {
    const auto fault = parse(json, each.line);
    ASSERT_FALSE(fault) << each.line << ": " << fault->what;
    EXPECT_THAT(json.texts(0), testing::ElementsAreArray(each.texts)) << each.line;
    EXPECT_EQ(json.lone_surrogates(), each.lone_surrogates) << each.line;
  }
}

struct faulty {
  std::string line;
  fault_kind kind;
  std::size_t offset_bytes;
  std::string what;
};

TEST(ExactJson, SaysWhatIsWrongWithARecord) {
  const auto no_object = fault_kind::not_an_object;
  const auto missing = fault_kind::missing_key;
  const auto wrong = fault_kind::wrong_type;
  const std::string expected = ", expected a string or a list of strings";
  const std::vector<faulty> cases = {
      {" []", no_object, 1, "the line holds a list, expected an object"},
      {R"("text")", no_object, 0, "the line holds a string, expected an object"},
      {"NaN", no_object, 0, "the line holds a number, expected an object"},
      {"-1", no_object, 0, "the line holds a number, expected an object"},
      {"false", no_object, 0, "the line holds a boolean, expected an object"},
      {"null ", no_object, 0, "the line holds null, expected an object"},
      {R"([{"text":"a"}])", no_object, 0, "the line holds a list, expected an object"},
      {"{} ", missing, 1, R"(no key "text"; the record has no keys)"},
      {R"({"Text":"a","a":{"text":"b"}} )", missing, 28,
       R"(no key "text"; the record has: Text, a)"},
      {R"({"text\u0000":"a"})", missing, 17, R"(no key "text"; the record has: text\x00)"},
      {R"({"text":1,"b":"a"})", wrong, 8, R"(key "text" holds a number)" + expected},
      {R"({"text": null})", wrong, 9, R"(key "text" holds null)" + expected},
      {R"({"text":true})", wrong, 8, R"(key "text" holds a boolean)" + expected},
      {R"({"text":{"text":"a"}})", wrong, 8, R"(key "text" holds an object)" + expected},
      {R"({"text":"a","text":-Infinity})", wrong, 19, R"(key "text" holds a number)" + expected},
      {R"({"text":["a",["b"],1]})", wrong, 13,
       R"(element 1 of key "text" is a list, expected a string)"},
      {R"({"text":[{"a":["b"]}]})", wrong, 9,
       R"(element 0 of key "text" is an object, expected a string)"},
      {R"({"text":["a","b", null]})", wrong, 18,
       R"(element 2 of key "text" is null, expected a string)"},
      // if a line is not JSON, that is reported first
      {R"({"text":1,})", fault_kind::invalid_json, 10, "expected a key in double quotes after ','"},
      {"[1] 2", fault_kind::invalid_json, 4, "data after the value"},
  };
  exact_json json({"text"});
  for (const faulty& each : cases) {
    const auto fault = parse(json, each.line);
    ASSERT_TRUE(fault) << each.line;
    EXPECT_EQ(fault->kind, each.kind) << each.line;
    EXPECT_EQ(fault->offset_bytes, each.offset_bytes) << each.line;
    EXPECT_EQ(fault->what, each.what) << each.line;
  }
}

TEST(ExactJson, KeysMayBeAnyText) {
  exact_json json({"", "caf\u00e9 \U0001F600", "\uFFFD", "a\"b\\"});
  ASSERT_FALSE(parse(
      json,
      R"({"a\"b\u005C":"4","\uFFFD":"3","\ud800":"no","caf\u00e9 \ud83d\ude00":"2","":["1"]})"));
  EXPECT_THAT(json.texts(0), ElementsAre("1"));
  EXPECT_THAT(json.texts(1), ElementsAre("2"));
  EXPECT_THAT(json.texts(2), ElementsAre("3"));
  EXPECT_THAT(json.texts(3), ElementsAre("4"));
}

TEST(ExactJson, FirstFaultyKeyIsNamedInTheOrderOfTheKeys) {
  exact_json json({"b", "a"});
  EXPECT_EQ(parse(json, R"({"a":1,"b":2})")->what,
            R"(key "b" holds a number, expected a string or a list of strings)");
  EXPECT_EQ(parse(json, R"({"b":"x"})")->what, R"(no key "a"; the record has: b)");
}

TEST(ExactJson, MissingKeyComesWithTheKeysThatThereAreAndOneToTry) {
  exact_json content({"content"});
  const auto fault = parse(content, R"({"id":1,"text":"a","id":2})");
  EXPECT_EQ(fault->what, R"(no key "content"; the record has: id, text)");
  EXPECT_EQ(fault->advice, "Use --json-keys text");
  // A key may contain characters that cannot be printed in a one-line message.
  EXPECT_EQ(parse(content, R"({"a\nb":"x"})")->what, R"(no key "content"; the record has: a\x0ab)");
  EXPECT_EQ(parse(content, R"({"contents":"a","text":"b"})")->advice, "Use --json-keys contents");
  EXPECT_EQ(parse(content, R"({"id":1})")->advice, "");
  EXPECT_EQ(parse(content, R"({"id":1})")->what, R"(no key "content"; the record has: id)")
      << "nothing of the lines before";
  EXPECT_EQ(parse(content, R"({"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1})")->what,
            R"(no key "content"; the record has: a, b, c, d, e, f, g, h, ...)");
  for (const std::string& name : {std::string(61, 'k'), std::string("\\ud800")}) {
    EXPECT_EQ(parse(content, "{\"" + name + "\":1}")->what, R"(no key "content")")
        << "nor that the record has no keys: " << name;
  }
  exact_json two({"content", "title"});
  EXPECT_EQ(parse(two, R"({"text":"a","title":"b"})")->advice, "") << "the other key stays";
}

// The result must not depend on the blocks in which strings are read.
TEST(ExactJson, StringsMayBeOfAnyLengthAndEndAnywhere) {
  exact_json json({"text"});
  for (std::size_t before = 0; before < 40; ++before) {
    for (std::size_t after = 0; after < 40; ++after) {
      const std::string head(before, 'x');
      const std::string tail(after, 'y');
      ASSERT_FALSE(parse(json, join({"{\"text\":\"", head, "\\n", tail, "\"}"})));
      ASSERT_THAT(json.texts(0), ElementsAre(join({head, "\n", tail})));
      const auto fault = parse(json, join({"{\"text\":\"", head, "\x1f", tail, "\"}"}));
      ASSERT_TRUE(fault);
      ASSERT_EQ(fault->offset_bytes, 9 + before);
    }
  }
}

TEST(ExactJson, EveryCutOfALineIsRefused) {
  exact_json json({"text", "b"});
  const std::string line =
      "{\"text\": [\"a\\u00e9\\ud83d\\ude00\u00e9 and some more letters\", \"\"], \"n\": [-1.5e+3, "
      "true, "
      "null, false, -Infinity, NaN, {}], \"b\": \"\\\\\"}";
  ASSERT_FALSE(parse(json, line));
  for (std::size_t size = 0; size < line.size(); ++size) {
    const auto fault = parse(json, line.substr(0, size));
    ASSERT_TRUE(fault) << size;
    EXPECT_LE(fault->offset_bytes, size);
  }
}

TEST(ExactJson, NothingIsLeftOfTheLineBefore) {
  exact_json json({"text"});
  const std::string letters(9 << 20, 'a');
  ASSERT_FALSE(parse(json, R"({"text":[")" + letters + R"(","\ud800"]})"));
  EXPECT_THAT(json.texts(0), ElementsAre(letters, "\uFFFD"));
  ASSERT_FALSE(parse(json, R"({"text":[]})"));
  EXPECT_THAT(json.texts(0), ElementsAre());
  EXPECT_EQ(json.lone_surrogates(), 0);
  ASSERT_TRUE(parse(json, R"({"other":"c"})"));
  ASSERT_FALSE(parse(json, R"({"text":"d"})"));
  EXPECT_THAT(json.texts(0), ElementsAre("d"));
}

}  // namespace
}  // namespace millrace::preprocess
