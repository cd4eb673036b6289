// SPDX-License-Identifier: Apache-2.0
#include "gpt2/vocab_json.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>

namespace millrace::tokenizer::detail {
namespace {

std::vector<std::pair<std::string, std::int32_t>> entries_of(std::string_view json) {
  std::vector<std::pair<std::string, std::int32_t>> all;
  for (const auto& entry : parse_vocab_json(json)) all.emplace_back(entry.spelled, entry.id);
  return all;
}

TEST(ParseVocabJson, GivesEntriesByAscendingId) {
  EXPECT_THAT(entries_of("{\"b\": 7, \"\\u0120a\": 0,\n\"\\\\\": 3}"),
              testing::ElementsAre(std::pair("\u0120a", 0), std::pair("\\", 3), std::pair("b", 7)));
  EXPECT_THAT(entries_of("{}"), testing::IsEmpty());
}

TEST(ParseVocabJson, TakesSpecialTokensOutsideTheAlphabet) {
  EXPECT_THAT(entries_of("{\"<a b>\": 1, \"[\u65E5]\": 0}"),
              testing::ElementsAre(std::pair("[\u65E5]", 0), std::pair("<a b>", 1)));
}

TEST(ParseVocabJson, TakesTheHighestIdThatATokenCanHave) {
  EXPECT_THAT(entries_of("{\"a\": 4194303}"), testing::ElementsAre(std::pair("a", 4194303)));
}

struct bad_vocab_file {
  const char* name;
  std::string text;
  std::uint64_t offset;
  const char* problem;  ///< part of the message
};
class ParseBadVocabJson : public testing::TestWithParam<bad_vocab_file> {};

TEST_P(ParseBadVocabJson, NamesFaultAndPlace) {
  try {
    (void)parse_vocab_json(GetParam().text);
    FAIL() << "accepted";
  } catch (const format_error& e) {
    EXPECT_EQ(e.offset(), GetParam().offset) << e.what();
    EXPECT_THAT(e.what(), testing::HasSubstr(GetParam().problem));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ParseBadVocabJson,
    testing::Values(
        bad_vocab_file{"Empty", "", 0, "empty"}, bad_vocab_file{"Blank", " \n", 2, "not JSON"},
        bad_vocab_file{"Binary",
                       std::string("\x7F"
                                   "ELF\x02\x01\0\0",
                                   8),
                       0, "not JSON"},
        bad_vocab_file{"Truncated", "{\"a\": 1, \"b", 11, "not JSON"},
        bad_vocab_file{"TwoValues", "{\"a\": 1} {}", 9, "not JSON"},
        bad_vocab_file{"InvalidUtf8", "{\"a\": 1, \"\xFF\": 2}", 10, "not JSON"},
        bad_vocab_file{"Array", "[1, 2]", 0, "expected a JSON object"},
        bad_vocab_file{"Scalar", "17", 0, "expected a JSON object"},
        bad_vocab_file{"StringId", "{\"a\": 1, \"b\": \"2\"}", 9,
                       "'b' has an id that is not an integer"},
        bad_vocab_file{"FractionId", "{\"b\": 2.5}", 1, "not an integer"},
        bad_vocab_file{"NullId", "{\"b\": null}", 1, "not an integer"},
        bad_vocab_file{"NestedId", "{\"a\": 1, \"b\": {\"c\": 2}}", 9, "not an integer"},
        bad_vocab_file{"NegativeId", "{\"a\": 1, \"b\": -1}", 9, "outside 0..4194303"},
        bad_vocab_file{"HugeId", "{\"a\": 1, \"b\": 4194304}", 9, "outside 0..4194303"},
        bad_vocab_file{"EnormousId", "{\"b\": 18446744073709551615}", 1, "outside 0..4194303"},
        bad_vocab_file{"EmptyToken", "{\"a\": 1, \"\": 2}", 9, "a token is empty"},
        bad_vocab_file{"RepeatedToken", "{\"a\": 1, \"b\": 2, \"a\": 3}", 17, "'a' occurs twice"},
        bad_vocab_file{"RepeatedId", "{\"a\": 2, \"b\": 1, \"c\": 2}", 17,
                       "'c' has the id of 'a', 2"},
        bad_vocab_file{"SpaceInToken", "{\"a\": 1, \"b c\": 2}", 9,
                       "'b c' has a character outside"},
        bad_vocab_file{"OtherScript", "{\"\u65E5\": 2}", 1,
                       "'\\xe6\\x97\\xa5' has a character outside"}),
    [](const auto& each) { return std::string(each.param.name); });

// Every truncated file is refused, and no file is read past its end.
TEST(ParseVocabJson, RejectsEveryTruncation) {
  const std::string json = "{\"a\": 1, \"\\u0120b\": 22, \"\u00E9\": 3}";
  ASSERT_EQ(parse_vocab_json(json).size(), 3U);
  for (std::size_t size = 0; size < json.size(); ++size) {
    try {
      (void)parse_vocab_json(std::string(json, 0, size));
      ADD_FAILURE() << "accepted the first " << size << " bytes";
    } catch (const format_error& e) {
      EXPECT_LE(e.offset(), size) << e.what();
    }
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
