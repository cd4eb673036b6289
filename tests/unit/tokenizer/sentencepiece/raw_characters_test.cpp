// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/raw_characters.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>

#include "unicode/utf8.hpp"

namespace millrace::tokenizer::detail {
namespace {

using rule = std::pair<std::string_view, std::string_view>;

// A charsmap in the layout of darts-clone, each family of children in a block of its own.
class charsmap_of {
 public:
  charsmap_of(std::initializer_list<rule> rules) : units_(256) {
    for (const rule& r : rules) add(r);
  }

  operator charsmap() const {
    std::string blob(sizeof(std::uint32_t), '\0');
    const auto bytes = static_cast<std::uint32_t>(units_.size() * sizeof(std::uint32_t));
    std::memcpy(blob.data(), &bytes, sizeof bytes);
    blob.append(reinterpret_cast<const char*>(units_.data()), bytes);
    return charsmap(blob + (replacements_.empty() ? std::string(2, '\0') : replacements_), 0);
  }

 private:
  // Where the children of a place are: a block behind all others, whose first place is for a value.
  std::uint32_t children_of(std::uint32_t place) {
    if (const std::uint32_t distance = units_[place] >> 10; distance != 0) return place ^ distance;
    const auto block = static_cast<std::uint32_t>(units_.size());
    units_.resize(units_.size() + 256);
    for (std::uint32_t i = 0; i < 256; ++i) units_[block + i] = 1 << 10;  // nobody's
    units_[place] = (units_[place] & 0x3FF) | (place ^ block) << 10;
    return block;
  }
  void add(const rule& r) {
    std::uint32_t place = 0;
    for (const char c : r.first) {
      const auto byte = static_cast<unsigned char>(c);
      place = children_of(place) ^ byte;
      if ((units_[place] & 0xFF) != byte) units_[place] = byte;
    }
    const std::uint32_t value = children_of(place);
    units_[place] |= 1U << 8;
    units_[value] = 1U << 31 | static_cast<std::uint32_t>(replacements_.size());
    replacements_ += r.second;
    replacements_ += '\0';
  }

  std::vector<std::uint32_t> units_;
  std::string replacements_;
};

TEST(RawCharacters, WithoutRulesOnlyTheSymbolForSpacesIsOdd) {
  const raw_characters all(charsmap(), true);
  ASSERT_TRUE(all.is_known());
  EXPECT_TRUE(all.is_odd(0x2581));
  EXPECT_FALSE(all.is_odd(0x2582));
  EXPECT_FALSE(all.is_odd('a'));
  EXPECT_TRUE(all.is_space(' '));
  EXPECT_FALSE(all.is_space('\n'));
  EXPECT_TRUE(all.is_odd(0x1FFFFF));  // in no text
  EXPECT_FALSE(raw_characters(charsmap(), false).is_odd(0x2581));
}

TEST(RawCharacters, AreWhatRulesMakeThem) {
  const charsmap rules =
      charsmap_of{{"\n", " "}, {"\x01", ""}, {"e\xCC\x81", "\xC3\xA9"}, {"\xEF\xBC\xA1", "A"}};
  ASSERT_EQ(rules.find("e\xCC\x81x")->replacement, "\xC3\xA9");
  const raw_characters all(rules, true);
  ASSERT_TRUE(all.is_known());
  EXPECT_TRUE(all.is_space('\n'));
  EXPECT_TRUE(all.is_odd(1));
  EXPECT_TRUE(all.is_odd(0x301));   // changes what is before it
  EXPECT_TRUE(all.is_odd(0xFF21));  // changes itself
  EXPECT_FALSE(all.is_odd('e'));    // does not by itself
  EXPECT_TRUE(all.has_sequences());
  EXPECT_TRUE(all.all_plain("e f"));
  EXPECT_FALSE(all.all_plain("e\n"));
  EXPECT_FALSE(all.all_plain("e\xCC\x81"));
}

TEST(RawCharacters, AreNotKnownWhereAsciiChangesWhatIsBeforeIt) {
  EXPECT_FALSE(raw_characters(charsmap_of{{"ab", "x"}}, true).is_known());
  EXPECT_FALSE(raw_characters(charsmap_of{{" ", "x"}}, true).is_known());
  EXPECT_FALSE(raw_characters(charsmap_of{{"\xC3", "x"}}, true).is_known());
  EXPECT_TRUE(raw_characters(charsmap_of{{"a", "x"}}, true).is_known());
}

}  // namespace
}  // namespace millrace::tokenizer::detail
