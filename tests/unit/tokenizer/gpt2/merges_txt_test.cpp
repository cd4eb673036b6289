// SPDX-License-Identifier: Apache-2.0
#include "gpt2/merges_txt.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include <millrace/error.hpp>

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
}  // namespace millrace::tokenizer::detail
