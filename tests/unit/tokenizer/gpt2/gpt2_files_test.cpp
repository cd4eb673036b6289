// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/error.hpp>

#include "gpt2/gpt2_files.hpp"

namespace millrace::tokenizer::detail {
namespace {

const token_ids ids = {{"a", 0},  {"b", 1},  {"c", 2},   {"#", 3},      {"ab", 4},
                       {"bc", 5}, {"##", 6}, {"abc", 7}, {"\u0120", 8}, {"\u0120a", 9}};

using triples = std::vector<std::tuple<int, int, int>>;
triples parsed(std::string_view text) {
  triples all;
  for (const merge_rule& rule : parse_merges_txt(text, ids)) {
    all.emplace_back(rule.left, rule.right, rule.result);
  }
  return all;
}

TEST(ParseMergesTxt, ReadsOneRuleALine) {
  const triples expected = {{0, 1, 4}, {4, 2, 7}, {8, 0, 9}};
  EXPECT_EQ(parsed("a b\nab c\n\u0120 a\n"), expected);
  EXPECT_EQ(parsed("a b\nab c\n\u0120 a"), expected) << "no final newline";
  EXPECT_EQ(parsed("#version: 0.2\na b\nab c\n\u0120 a\n"), expected);
  EXPECT_EQ(parsed("#version: 0.2\r\na b\r\nab c\r\n\u0120 a\r\n"), expected) << "CRLF";
  EXPECT_EQ(parsed("a b\n#version: 0.2\nab c\n\u0120 a\n"), expected) << "as Hugging Face does";
}

TEST(ParseMergesTxt, HoldsNoCommentButTheVersion) {
  EXPECT_EQ(parsed("# #\n"), (triples{{3, 3, 6}}));
  EXPECT_EQ(parsed("#version: 0.2\n"), triples());  // the file for a vocabulary of only bytes
}

TEST(ParseMergesTxt, KeepsRepeatedRules) {
  EXPECT_EQ(parsed("a b\nb c\na b\n"), (triples{{0, 1, 4}, {1, 2, 5}, {0, 1, 4}}));
}

struct bad_merges_file {
  const char* name;
  std::string text;
  std::uint64_t offset;
  const char* problem;  ///< part of the message
};
class ParseBadMergesTxt : public testing::TestWithParam<bad_merges_file> {};

TEST_P(ParseBadMergesTxt, NamesFaultAndPlace) {
  try {
    (void)parse_merges_txt(GetParam().text, ids);
    FAIL() << "accepted";
  } catch (const format_error& e) {
    EXPECT_EQ(e.offset(), GetParam().offset) << e.what();
    EXPECT_THAT(e.what(), testing::HasSubstr(GetParam().problem));
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, ParseBadMergesTxt,
    testing::Values(
        bad_merges_file{"Empty", "", 0, "empty"},
        bad_merges_file{"Binary",
                        std::string("\x7F"
                                    "ELF\x02\x01\0\0",
                                    8),
                        0, "'\\x7fELF\\x02\\x01"},
        bad_merges_file{"NoSeparator", "a b\nab\n", 4, "line 2: expected two tokens"},
        bad_merges_file{"TwoSeparators", "a b\na b c\n", 4, "line 2: expected two tokens"},
        bad_merges_file{"TwoSpaces", "a  b\n", 0, "line 1: expected two tokens"},
        bad_merges_file{"SpaceAtEnd", "a b \n", 0, "line 1: expected two tokens"},
        bad_merges_file{"Tab", "a\tb\n", 0, "line 1: expected two tokens"},
        bad_merges_file{"EmptyLine", "a b\n\nab c\n", 4, "line 2: expected two tokens"},
        bad_merges_file{"EmptyLastLine", "a b\n\n", 4, "line 2: expected two tokens"},
        bad_merges_file{"EmptyPart", "a \n", 0, "line 1: right part '' is not in the vocabulary"},
        bad_merges_file{"UnknownLeft", "a b\nx b\n", 4, "line 2: left part 'x'"},
        bad_merges_file{"UnknownRight", "a x\n", 0, "line 1: right part 'x'"},
        bad_merges_file{"UnknownResult", "a b\na c\n", 4, "line 2: merged token 'ac'"},
        bad_merges_file{"CutInTheLastLine", "a b\nab", 4, "line 2: expected two tokens"},
        bad_merges_file{"ReturnAtEndOfFile", "a b\nab c\r", 4, "line 2: right part 'c\\x0d'"},
        bad_merges_file{"LoneReturns", "a b\rab c\r", 0, "line 1: expected two tokens"},
        bad_merges_file{"ByteOrderMark", "\uFEFFa b\n", 0, "line 1: left part '\\xef\\xbb\\xbfa'"}),
    [](const auto& each) { return std::string(each.param.name); });

}  // namespace

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
