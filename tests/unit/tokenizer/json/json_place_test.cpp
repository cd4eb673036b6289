// SPDX-License-Identifier: Apache-2.0
#include "json/json_place.hpp"

#include <array>
#include <cstdlib>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::tokenizer::detail {
namespace {

constexpr std::string_view text = R"( {"a": [1, {"b\"}": "]"}, "c"], "d" : null})";

std::size_t place(std::initializer_list<std::size_t> path) {
  return json_place(text, std::span(path.begin(), path.size()));
}

TEST(JsonPlace, IsThatOfTheEntry) {
  EXPECT_EQ(place({}), 1U);
  EXPECT_EQ(place({0}), text.find("\"a\""));
  EXPECT_EQ(place({0, 0}), text.find('1'));
  EXPECT_EQ(place({0, 1}), text.find("{\"b"));
  EXPECT_EQ(place({0, 1, 0}), text.find("\"b"));
  EXPECT_EQ(place({0, 2}), text.find("\"c\""));
  EXPECT_EQ(place({1}), text.find("\"d\""));
}

TEST(JsonPlace, IsThatOfTheLastStepThereIs) {
  EXPECT_EQ(place({2}), text.size() - 1);
  const std::string_view cut = text.substr(0, text.find(", \"c\""));
  const std::array<std::size_t, 2> path = {0, 2};
  EXPECT_EQ(json_place(cut, path), cut.size());
}

TEST(JsonEnd, IsTheSizeOfWhatIsWhole) {
  for (const std::string json : {"1", "[]", "{}", " [ ] ",
                                 R"({"a": [1, {"b": "c\"]"}, null, []], "d": {}})", "[[[]], {}]"}) {
    EXPECT_EQ(json_end(json), json.size()) << json;
  }
}

TEST(JsonEnd, IsTheFirstByteThatCannotBeThere) {
  EXPECT_EQ(json_end("[1] x"), 4U);
  EXPECT_EQ(json_end("[1, 2] 3"), 7U);
  EXPECT_EQ(json_end("[1, ]"), 4U);
  EXPECT_EQ(json_end("[1}"), 2U);
  EXPECT_EQ(json_end(R"({"a" 1})"), 5U);
  EXPECT_EQ(json_end(R"({"a": 1,})"), 8U);
  EXPECT_EQ(json_end("{1: 2}"), 1U);
  EXPECT_EQ(json_end("[\"a\nb\"]"), 3U);
  EXPECT_EQ(json_end("[\"a\xFF\"]"), 3U);
  EXPECT_EQ(json_end("[\"a\xC3\"]"), 3U);             // half a character
  EXPECT_EQ(json_end("[\"\xED\xA0\x80\"]"), 2U);      // a surrogate
  EXPECT_EQ(json_end("[\"\xC0\x80\"]"), 2U);          // an overlong encoding
  EXPECT_EQ(json_end("[\"\xF4\x90\x80\x80\"]"), 2U);  // beyond U+10FFFF
  EXPECT_EQ(json_end(""), 0U);
}

// In a truncated copy, the error is at the end, because more text is expected there.
TEST(JsonEnd, IsTheSizeOfEveryTruncation) {
  const std::string json = R"([{"rank": 0, "token_bytes": "AA==", "token_str": "\u0000"}, [-1.5]])";
  for (std::size_t size = 0; size < json.size(); ++size) {
    EXPECT_EQ(json_end(json.substr(0, size)), size);
  }
}

TEST(JsonEnd, TakesAnyDepth) {
  const std::string deep(1000000, '[');
  EXPECT_EQ(json_end(deep), deep.size());
  EXPECT_EQ(json_end(deep + std::string(1000000, ']')), 2000000U);
}

TEST(JsonNumbers, AreThoseOfTheValueAsTheyAreWritten) {
  const std::string_view json = R"({"a": [1.50, {"b": -2e3, "9": "7"}, null, [[3]]], "c": 4})";
  const std::array<std::size_t, 1> path = {0};
  EXPECT_EQ(json_numbers(json, path), (std::vector<std::string_view>{"1.50", "-2e3", "3"}));
}

}  // namespace

namespace {

std::string changed(const char* json) {
  return with_floats_for_wide_integers(json);
}

TEST(WideIntegers, BecomeFloatsOfTheirSize) {
  EXPECT_EQ(changed("[1000000000000000019884624838656]"), "[1.00000000000000001988462483e30]");
  EXPECT_EQ(changed("-9999999999999999999"), "-9.99999999999999e18");
  const std::string digits = "1234567890123456789012345678901234567890";
  EXPECT_EQ(std::strtod(changed(digits.c_str()).c_str(), nullptr),
            std::strtod(digits.c_str(), nullptr));
  EXPECT_EQ(changed(digits.c_str()).size(), digits.size());
}

TEST(WideIntegers, LeaveAllElseAlone) {
  for (const char* json : {
           "[1, 123456789012345678, \"1000000000000000000000\"]",  // 18 digits, and a string
           R"({"a\"1000000000000000000000":2})",
           R"("\\")",
           "0.1000000000000000000000",
           "1000000000000000000000.5",
           "1000000000000000000000e5",
           "1e+1000000000000000000000",
           "00000000000000000000001",
           "\"1000000000000000000000",  // truncated
           "\"\\",
           "",
       }) {
    EXPECT_EQ(changed(json), json);
  }
}

}  // namespace

}  // namespace millrace::tokenizer::detail
