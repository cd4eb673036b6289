// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/read_components.hpp"

#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regex/pattern_tree.hpp"
#include "regex/pcre2_pattern.hpp"

namespace millrace::tokenizer::detail {
namespace {

using testing::ElementsAre;

class RegexComponents : public testing::Test {
 protected:
  void SetUp() override {
    if (pcre2_version().empty()) GTEST_SKIP() << "this build is without PCRE2";
  }
};

std::vector<std::string> pieces(split_behavior behavior, bool invert, std::string_view pattern,
                                std::string_view text) {
  const auto stage = make_regex_stage(pattern, behavior, invert);
  stage_scratch scratch;
  piece_list list;
  list.add("before");
  stage->cut({text}, scratch, list);
  std::vector<std::string> found;
  std::size_t begin = 0;
  for (const std::size_t end : list.ends) {
    found.push_back(list.text.substr(begin, end - begin));
    begin = end;
  }
  EXPECT_EQ(begin, list.text.size());
  return found;
}

TEST_F(RegexComponents, SplitBehavesAsItsNameSays) {
  const auto split = [](split_behavior behavior) {
    return pieces(behavior, false, R"(\d|-)", "\u00E91-2--");
  };
  EXPECT_THAT(split(split_behavior::isolated),
              ElementsAre("before", "\u00E9", "1", "-", "2", "-", "-"));
  EXPECT_THAT(split(split_behavior::removed), ElementsAre("before", "\u00E9"));
  EXPECT_THAT(split(split_behavior::contiguous), ElementsAre("before", "\u00E9", "1-2--"));
  EXPECT_THAT(split(split_behavior::merged_with_previous),
              ElementsAre("before", "\u00E91", "-", "2", "-", "-"));
  EXPECT_THAT(split(split_behavior::merged_with_next),
              ElementsAre("before", "\u00E9", "1", "-", "2", "-", "-"));
}

TEST_F(RegexComponents, SplitMayBeInverted) {
  EXPECT_THAT(pieces(split_behavior::removed, true, R"(\w+|[^\w\s]+)", "How are you?"),
              ElementsAre("before", "How", "are", "you", "?"));
  EXPECT_THAT(pieces(split_behavior::removed, true, "(?=b)", "ab"), ElementsAre("before"));
}

TEST_F(RegexComponents, ReplaceTakesEveryMatch) {
  const auto replace = make_regex_replace(R"(\s+|(?<=x)y)", "_");
  std::string buffer;
  EXPECT_EQ(replace->normalize(" \u00E9 \u3000b xyy", buffer), "_\u00E9_b_x_y");
  const std::string_view unchanged = "abc";
  EXPECT_EQ(replace->normalize(unchanged, buffer).data(), unchanged.data());
  EXPECT_EQ(replace->normalize("", buffer), "");
}

TEST_F(RegexComponents, ReplaceExpandsNothing) {
  std::string buffer;
  EXPECT_EQ(make_regex_replace("(a)", "$1\\1")->normalize("ba", buffer), "b$1\\1");
}

TEST(RegexReplace, TakesNoPatternThatMayMatchNothing) {
  EXPECT_THROW(make_regex_replace("a*", ""), pattern_error);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
