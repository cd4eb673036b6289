// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/seam_table.hpp"

#include <gtest/gtest.h>

#include <string_view>
#include <vector>

namespace millrace::tokenizer::detail {
namespace {

TEST(SeamTable, CharactersThatAreNeighboursInAPieceAreJoined) {
  const std::vector<std::string_view> pieces = {"ab", "\xC3\xA9\xE4\xB8\x80x", "c"};
  const seam_table seams(pieces);
  EXPECT_TRUE(seams.joined('a', 'b'));
  EXPECT_FALSE(seams.joined('b', 'a'));
  EXPECT_TRUE(seams.joined(0xE9, 0x4E00));
  EXPECT_TRUE(seams.joined(0x4E00, 'x'));
  EXPECT_EQ(seams.fragment_end("abc", 0), 2U);
  EXPECT_EQ(seams.fragment_end("abc", 2), 3U);
  EXPECT_EQ(seams.fragment_end("\xC3\xA9\xE4\xB8\x80xa", 0), 6U);
}

TEST(SeamTable, KnowsWhetherSpacesStandBehindAnything) {
  const std::vector<std::string_view> words = {" a", "  ", "b"};
  EXPECT_TRUE(seam_table(words).always_parts_before_space());
  const std::vector<std::string_view> spaced = {"x y"};
  EXPECT_FALSE(seam_table(spaced).always_parts_before_space());
}

}  // namespace
}  // namespace millrace::tokenizer::detail
