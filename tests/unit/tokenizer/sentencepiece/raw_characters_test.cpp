// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/raw_characters.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include <millrace/error.hpp>

#include "support/charsmap_builder.hpp"
#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

charsmap rules_of(const std::map<std::string, std::string>& rules) {
  return {test::charsmap_of(rules), 0};
}

TEST(RawCharacters, WithoutRulesOnlyTheSymbolForSpacesIsOdd) {
  const raw_characters all(charsmap(), true);
  ASSERT_TRUE(all.is_known());
  EXPECT_TRUE(all.is_odd(0x2581));
  EXPECT_FALSE(all.is_odd(0x2582));
  EXPECT_FALSE(all.is_odd('a'));
  EXPECT_TRUE(all.is_space(' '));
  EXPECT_FALSE(all.is_space('\n'));
  EXPECT_TRUE(all.is_odd(0x1FFFFF));  // does not occur in texts
  EXPECT_FALSE(raw_characters(charsmap(), false).is_odd(0x2581));
}

TEST(RawCharacters, AreWhatRulesMakeThem) {
  const charsmap rules =
      rules_of({{"\n", " "}, {"\x01", ""}, {"e\xCC\x81", "\xC3\xA9"}, {"\xEF\xBC\xA1", "A"}});
  ASSERT_EQ(rules.find("e\xCC\x81x")->replacement, "\xC3\xA9");
  const raw_characters all(rules, true);
  ASSERT_TRUE(all.is_known());
  EXPECT_TRUE(all.is_space('\n'));
  EXPECT_TRUE(all.is_odd(1));
  EXPECT_TRUE(all.is_odd(0x301));   // changes the character before it
  EXPECT_TRUE(all.is_odd(0xFF21));  // changes itself
  EXPECT_FALSE(all.is_odd('e'));    // does not change by itself
  EXPECT_TRUE(all.has_sequences());
  EXPECT_TRUE(all.all_plain("e f"));
  EXPECT_FALSE(all.all_plain("e\n"));
  EXPECT_FALSE(all.all_plain("e\xCC\x81"));
}

TEST(RawCharacters, AreNotKnownWhereAsciiChangesWhatIsBeforeIt) {
  EXPECT_FALSE(raw_characters(rules_of({{"ab", "x"}}), true).is_known());
  EXPECT_FALSE(raw_characters(rules_of({{" ", "x"}}), true).is_known());
  EXPECT_FALSE(raw_characters(rules_of({{"\xC3", "x"}}), true).is_known());
  EXPECT_TRUE(raw_characters(rules_of({{"a", "x"}}), true).is_known());
}

}  // namespace
}  // namespace millrace::tokenizer::detail
