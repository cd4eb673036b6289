// SPDX-License-Identifier: Apache-2.0
#include "split/deepseek_matcher.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "unit/tokenizer/split/pieces.hpp"

namespace millrace::tokenizer::detail {
namespace {

using test::strings;

void expect(const std::vector<std::pair<std::string, strings>>& cases) {
  const auto splitter = make_splitter(pattern::deepseek_v3);
  for (const auto& [text, parts] : cases) EXPECT_EQ(test::pieces(*splitter, text), parts) << text;
}

TEST(DeepseekMatcher, FollowsTheLastSplitCaseByCase) {
  expect({
      {"Hello world", {"Hello", " world"}},
      {"it's", {"it", "'s"}},
      {".foo\u00E9", {".foo", "\u00E9"}},  // only ASCII letters join punctuation
      {"..foo", {"..", "foo"}},
      {" .foo", {" .", "foo"}},
      {"\u20ACfoo", {"\u20AC", "foo"}},
      {"e\u0301t \u0301", {"e\u0301t", " \u0301"}},
      {"a!\n\n b", {"a", "!\n\n", " b"}},
      {"a \n b", {"a", " \n", " b"}},
  });
}

TEST(DeepseekMatcher, SeesTheEndOfATextWhereAnEarlierSplitHasCut) {
  expect({
      {"a  1", {"a", "  ", "1"}},
      {"a  b", {"a", " ", " b"}},
      {"  \u4E2D", {"  ", "\u4E2D"}},
      {"12345", {"123", "45"}},
      {"a\u4E2D\u3042b", {"a", "\u4E2D\u3042", "b"}},
      {"\u9FA5\u9FA6", {"\u9FA5", "\u9FA6"}},  // Han outside the range is like any other letter
      {"\u3042\u30FB\u3042", {"\u3042", "\u30FB", "\u3042"}},
      {"\u30FB\u3002", {"\u30FB", "\u3002"}},  // punctuation on both sides of a cut
      {"\u30FB\n", {"\u30FB", "\n"}},
  });
}

TEST(DeepseekMatcher, KeepsWhatNoAlternativeTakesInOnePiece) {
  expect({
      {"\x01\x02", {"\x01\x02"}},
      {"a\x01\x02"
       "b",
       {"a", "\x01",
        "\x02"
        "b"}},  // the last control is a prefix
      {"\x01 \x01", {"\x01", " ", "\x01"}},
      {"\u3040\u3040\u3042\u3040", {"\u3040", "\u3040\u3042", "\u3040"}},
      {"\u3040\x01", {"\u3040", "\x01"}},
  });
}

}  // namespace
}  // namespace millrace::tokenizer::detail
