// SPDX-License-Identifier: Apache-2.0
#include <map>
#include <string>
#include <string_view>

#include <gtest/gtest.h>

#include "normalize/normalizers.hpp"
#include "support/charsmap_builder.hpp"

namespace millrace::tokenizer::detail {
namespace {

using rules = std::map<std::string, std::string>;

std::string of(const rules& map, std::string_view text) {
  const normalizer_pointer made = make_precompiled(charsmap(test::charsmap_of(map), 0));
  std::string buffer;
  return std::string(made->normalize(text, buffer));
}

TEST(Precompiled, ReplacesCharactersByTheirRules) {
  const rules map = {{"\u2460", "1"}, {"\t", " "}, {"\u00AD", ""}, {"\uFB01", "fi"}};
  EXPECT_EQ(of(map, "\u2460\uFB01x\t\u00ADy\u2460"), "1fix y1");
  EXPECT_EQ(of(map, "\u00AD"), "");
  EXPECT_EQ(of(map, ""), "");
}

TEST(Precompiled, GivesTheTextBackWhereNoRuleApplies) {
  const normalizer_pointer made = make_precompiled(charsmap(test::charsmap_of({{"x", "y"}}), 0));
  const std::string text = "abc \u00E9\u0301 \u4E2D\n";
  std::string buffer;
  EXPECT_EQ(made->normalize(text, buffer).data(), text.data());
}

TEST(Precompiled, LooksUpShortClustersWhole) {
  EXPECT_EQ(of({{"e\u0301", "\u00E9"}}, "xe\u0301e\u0302"),
            "x\u00E9"
            "e\u0302");
  EXPECT_EQ(of({{"\r\n", " "}}, "a\r\nb\r\r\nc\n"), "a b\r c\n");
  // In a longer cluster, each character is looked up by itself.
  EXPECT_EQ(of({{"e\u0301", "\u00E9"}, {"\u0301", "'"}}, "e\u0301\u0302 e\u0301\u0302\u0302"),
            "\u00E9 e'\u0302\u0302");
}

// The shortest rule that matches the beginning of a cluster replaces the whole cluster. This loses
// text, but the reference does the same.
TEST(Precompiled, ReplacesAShortClusterByTheRuleForItsBeginning) {
  EXPECT_EQ(of({{"E", "e"}}, "E\u0301"), "e");
  EXPECT_EQ(of({{"E", "e"}, {"E\u0301", "\u00E9"}}, "E\u0301"), "e");
  EXPECT_EQ(of({{"E", "e"}}, "E\u0301\u0301\u0301"), "e\u0301\u0301\u0301");
  EXPECT_EQ(of({{"\r", " "}}, "\r\n"), " ");
}

TEST(Precompiled, FindsClustersBehindPlainText) {
  EXPECT_EQ(of({{"\u0301", "'"}}, "abce\u0301"), "abce'");
  EXPECT_EQ(of({{"e\u0301", "1"}},
               "\u4E2D"
               "abe\u0301abe\u0301"),
            "\u4E2D"
            "ab1ab1");
  // A consonant after a linker continues the cluster, unless a letter is between them.
  EXPECT_EQ(of({{"\u0915", "k"}}, "\u0915\u094D\u0915\u0301"), "k\u094Dk\u0301");
  EXPECT_EQ(of({{"\u0915", "k"}}, "\u0915\u094Dab\u0915\u0301"),
            "k\u094D"
            "abk");
}

}  // namespace
}  // namespace millrace::tokenizer::detail
