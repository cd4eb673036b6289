// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/json.hpp>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/seed.hpp"

namespace millrace::formats {
namespace {

using testing::HasSubstr;

std::string again(std::string_view text) {
  return write_json(parse_json(text));
}

TEST(Json, WritesWhatItReads) {
  for (const char* text : {"null",
                           "true",
                           "false",
                           "0",
                           "-1",
                           "9223372036854775807",
                           "9223372036854775808",
                           "18446744073709551615",
                           "-9223372036854775808",
                           "0.1",
                           "1.0",
                           "1e+300",
                           "-0.0",
                           "\"\"",
                           "\"a\\\"b\\\\c\\nd\\u0001\"",
                           "[]",
                           "{}",
                           "[1, [2, {}], null]",
                           "{\"a\": 1, \"b\": {\"c\": [true, false]}}",
                           "\"\u00e9\U0001f600\""}) {
    EXPECT_EQ(again(text), text);
  }
  EXPECT_EQ(again(" [ 1 ,\n\t2 ] \r\n"), "[1, 2]");
  EXPECT_EQ(again("\"\\u00e9\\ud83d\\ude00\\/\\b\\f\\r\\t\""),
            "\"\u00e9\U0001f600/\\u0008\\u000c\\u000d\\u0009\"");
  EXPECT_EQ(again("[1.5E1, 1e0, 10e-1]"), "[15.0, 1.0, 1.0]");
}

TEST(Json, KnowsWhatAValueIs) {
  const json_value value = parse_json("{\"a\": 1, \"b\": 2.5, \"c\": \"d\"}");
  ASSERT_NE(value.find("a"), nullptr);
  EXPECT_EQ(*value.find("a")->as<std::int64_t>(), 1);
  double scratch = 0;
  EXPECT_EQ(*value.find("a")->as_double(scratch), 1.0);
  EXPECT_EQ(*value.find("b")->as_double(scratch), 2.5);
  EXPECT_EQ(value.find("c")->as_double(scratch), nullptr);
  EXPECT_EQ(value.find("b")->as<std::int64_t>(), nullptr);
  EXPECT_EQ(value.find("d"), nullptr);
  EXPECT_EQ(value.find("a")->find("a"), nullptr);
  EXPECT_STREQ(value.kind(), "an object");
  EXPECT_STREQ(json_value().kind(), "null");
  EXPECT_STREQ(value.find("b")->kind(), "a number");
  EXPECT_TRUE(json_value().is_null());
  EXPECT_FALSE(value == json_value());
}

// Bytes that are not UTF-8 are kept, escaped as by Python's surrogateescape. This is needed for
// file names.
TEST(Json, KeepsBytesThatAreNotUtf8) {
  EXPECT_EQ(write_json("caf\xE9 \xC3\xA9\x80\xFF\xED\xB2\x80"),
            "\"caf\\udce9 \xC3\xA9\\udc80\\udcff\\udced\\udcb2\\udc80\"");
  EXPECT_EQ(*parse_json("\"caf\\udce9 \\uDC80\\udcFF\"").as<std::string>(), "caf\xE9 \x80\xFF");
  for (int byte = 0x80; byte < 0x100; ++byte) {
    const json_value value(std::string("a") + static_cast<char>(byte) + "b");
    EXPECT_EQ(parse_json(write_json(value)), value) << byte;
  }
}

// The character DEL is written unescaped, as in the states of every version. In contrast, a .meta
// escapes it.
TEST(Json, WritesDeleteAsItIs) {
  EXPECT_EQ(write_json("a\x7F"), "\"a\x7F\"");
  EXPECT_EQ(json_writer().value("a\x7F").text(), "\"a\\u007f\"");
}

TEST(Json, KnowsWhereAValueWas) {
  const json_value value = parse_json("  {\"a\": 1, \"b\": [ 2, {\"c\": null}]}");
  EXPECT_EQ(value.offset(), 2U);
  EXPECT_EQ(value.find("a")->offset(), 3U);
  EXPECT_EQ(value.find("b")->offset(), 11U);
  const json_array& array = *value.find("b")->as<json_array>();
  EXPECT_EQ(array[0].offset(), 18U);
  EXPECT_EQ(array[1].offset(), 21U);
  EXPECT_EQ(array[1].find("c")->offset(), 22U);
  EXPECT_EQ(json_value(1).offset(), 0U);
}

// A whole number is an int64 if it fits, otherwise a uint64. This does not depend on how the value
// was made.
TEST(Json, HoldsWholeNumbersOfSixtyFourBits) {
  EXPECT_EQ(json_value(std::uint64_t{5}), json_value(5));
  EXPECT_EQ(json_value(std::uint64_t{5}).as<std::uint64_t>(), nullptr);
  const json_value large = parse_json("9223372036854775808");
  EXPECT_EQ(large.as<std::int64_t>(), nullptr);
  EXPECT_EQ(*large.as<std::uint64_t>(), std::uint64_t{1} << 63);
  EXPECT_EQ(large, json_value(std::uint64_t{1} << 63));
  double scratch = 0;
  EXPECT_EQ(*large.as_double(scratch), 0x1p63);
  EXPECT_STREQ(large.kind(), "a whole number");
}

TEST(Json, RefusesWhatIsNone) {
  const auto expect_refused = [](std::string_view text, std::size_t offset,
                                 const std::string& expected) {
    try {
      (void)parse_json(text);
      ADD_FAILURE() << "accepted: " << text;
    } catch (const format_error& e) {
      EXPECT_EQ(e.offset(), offset) << text << ": " << e.what();
      EXPECT_THAT(e.what(), HasSubstr(expected)) << text;
    }
  };
  expect_refused("", 0, "expected a value, found the end of the text");
  expect_refused("nul", 0, "expected a value");
  expect_refused("1 2", 2, "expected the end of the text");
  expect_refused("[1,]", 3, "expected a value");
  expect_refused("[1", 2, "a comma or a closing bracket, found the end");
  expect_refused("{\"a\" 1}", 5, "a colon");
  expect_refused("{\"a\": 1", 7, "a comma or a closing brace");
  expect_refused("{a: 1}", 1, "a name in quotation marks");
  expect_refused("{\"a\": 1, \"a\": 2}", 9, "each name once");
  expect_refused("01", 1, "the end of the text");
  expect_refused("-", 1, "a digit");
  expect_refused("1.", 2, "a digit");
  expect_refused("1e", 2, "a digit");
  expect_refused("+1", 0, "a value");
  expect_refused("NaN", 0, "a value");
  expect_refused("18446744073709551616", 0, "a whole number that fits 64 bits");
  expect_refused("-9223372036854775809", 0, "a whole number that fits 64 bits");
  expect_refused("1e999", 0, "a number that fits a double");
  expect_refused("\"a", 2, "a closing quotation mark");
  expect_refused("\"a\nb\"", 2, "control characters escaped");
  expect_refused("\"\xff\"", 1, "UTF-8, with control characters escaped");
  expect_refused("\"\\x\"", 2, "one of JSON's escapes");
  expect_refused("\"\\u12g4\"", 5, "four hexadecimal digits");
  expect_refused("\"\\ud800\"", 7, "the second half of a surrogate pair");
  expect_refused("\"\\ud800\\u0041\"", 13, "the second half of a surrogate pair");
  expect_refused("\"\\udc00\"", 7, "a surrogate only in a pair");
  expect_refused("\"\\udc7f\"", 7, "a surrogate only in a pair");
  expect_refused("\"\\udd00\"", 7, "a surrogate only in a pair");
  expect_refused(std::string_view("\0", 1), 0, "a value");
  expect_refused(std::string_view("1\0", 2), 1, "the end of the text");
  expect_refused(std::string(100, '['), 65, "a value nested in at most 64 others");
}

TEST(Json, SurvivesEveryAlteration) {
  const std::string text = R"({"a": [1, -2.5e3, "x\u00e9\n"], "b": {"c": null, "d": true}})";
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      std::string altered = text;
      altered[at] = static_cast<char>(value);
      try {
        const json_value parsed = parse_json(altered);
        EXPECT_EQ(parse_json(write_json(parsed)), parsed);
      } catch (const format_error& e) {
        EXPECT_LE(e.offset(), altered.size());
      }
    }
    EXPECT_THROW((void)parse_json(text.substr(0, at)), format_error);
  }
}

TEST(Json, KeepsDoublesToTheBit) {
  std::mt19937_64 random(test::seed(6));
  for (int i = 0; i < 20000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    const json_value parsed = parse_json(write_json(value));
    ASSERT_NE(parsed.as<double>(), nullptr);
    EXPECT_EQ(std::bit_cast<std::uint64_t>(*parsed.as<double>()),
              std::bit_cast<std::uint64_t>(value));
  }
}

}  // namespace
}  // namespace millrace::formats
