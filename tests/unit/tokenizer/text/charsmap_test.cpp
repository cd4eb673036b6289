// SPDX-License-Identifier: Apache-2.0
#include "text/charsmap.hpp"

#include <cstdint>
#include <cstring>
#include <string>

#include <gtest/gtest.h>

#include <millrace/error.hpp>

#include "support/charsmap_builder.hpp"

namespace millrace::tokenizer::detail {
namespace {

using test::charsmap_of;

TEST(Charsmap, FindsTheLongestRuleAndTheShortest) {
  const charsmap rules(charsmap_of({{"a", "1"}, {"ab", "2"}, {"abc", ""}, {"\u00E9", "e"}}), 0);
  EXPECT_EQ(rules.find("abx")->replacement, "2");
  EXPECT_EQ(rules.find("abcd")->size_bytes, 3U);
  EXPECT_EQ(rules.find("abcd")->replacement, "");
  EXPECT_EQ(rules.find_shortest("abcd")->size_bytes, 1U);
  EXPECT_EQ(rules.find_shortest("abcd")->replacement, "1");
  EXPECT_EQ(rules.find_shortest("\u00E9")->replacement, "e");
  EXPECT_FALSE(rules.find_shortest("\u00E8"));
  EXPECT_FALSE(rules.find_shortest("xa"));
  EXPECT_FALSE(rules.find_shortest(""));
  EXPECT_FALSE(charsmap().find_shortest("a"));
}

// In a double array, the byte 0 leads from a node to its value.
TEST(Charsmap, FindsNothingBeyondAZeroByte) {
  const charsmap rules(charsmap_of({{"ab", "1"}}), 0);
  EXPECT_FALSE(rules.find_shortest(std::string("\0ab", 3)));
  EXPECT_FALSE(rules.find_shortest(std::string("a\0b", 3)));
}

std::string complaint(const std::string& blob) {
  try {
    (void)charsmap(blob, 100);
  } catch (const format_error& e) {
    return e.what();
  }
  return "accepted";
}

// Overwrites unit number `place` of the trie.
std::string with_unit(std::string blob, std::size_t place, std::uint32_t unit) {
  std::memcpy(blob.data() + sizeof unit * (place + 1), &unit, sizeof unit);
  return blob;
}

TEST(Charsmap, SaysWhatIsWrongWithABlob) {
  const std::string good = charsmap_of({{"a", "\u00E9"}});
  ASSERT_EQ(complaint(good), "accepted");
  const std::size_t trie_end = good.size() - 3;
  EXPECT_EQ(complaint(good.substr(0, 4)), "the charsmap is truncated (at byte 100)");
  EXPECT_EQ(
      complaint(good.substr(0, trie_end)),
      "the trie of the charsmap has 3072 bytes, expected a multiple of 1024 below its own 3076 "
      "(at byte 100)");
  EXPECT_EQ(complaint(good.substr(0, good.size() - 1)),
            "the last replacement of the charsmap has no end (at byte 3178)");
  std::string broken = good;
  broken[trie_end] = '\xFF';
  EXPECT_EQ(complaint(broken), "a replacement of the charsmap is not UTF-8 (at byte " +
                                   std::to_string(100 + trie_end) + ")");
  // The leaf is the first unit of the third block.
  EXPECT_EQ(complaint(with_unit(good, 512, 1U << 31 | 1)),
            "a replacement of the charsmap begins inside a character (at byte 2152)");
  EXPECT_EQ(complaint(with_unit(good, 512, 1U << 31 | 3)),
            "the charsmap points outside itself (at byte 2152)");
  EXPECT_EQ(complaint(with_unit(good, 512, 0)), "the charsmap points outside itself (at byte " +
                                                    std::to_string(100 + 4 * (1 + (256 ^ 'a'))) +
                                                    ")");
  EXPECT_EQ(complaint(with_unit(good, 0, 768U << 10)),
            "the charsmap points outside itself (at byte 104)");
}

}  // namespace
}  // namespace millrace::tokenizer::detail
