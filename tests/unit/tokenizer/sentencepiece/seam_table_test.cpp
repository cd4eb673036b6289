// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/seam_table.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace millrace::tokenizer::detail {
namespace {

std::vector<std::string> words_of(const seam_table& seams, std::string_view text,
                                  std::size_t batch) {
  std::vector<std::string> words;
  std::vector<std::size_t> ends(batch);
  std::size_t at = 0;
  while (const std::size_t count = next_word_ends(seams, text, at, ends)) {
    for (std::size_t i = 0; i < count; ++i) {
      words.emplace_back(text.substr(at, ends[i] - at));
      at = ends[i];
    }
  }
  EXPECT_EQ(at, text.size());
  return words;
}

using list = std::vector<std::string>;

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

TEST(NextWordEnds, CutsBeforeSpacesAndAroundLineFeeds) {
  const seam_table seams;
  EXPECT_EQ(words_of(seams, "", 4), list{});
  EXPECT_EQ(words_of(seams, "  a b\n\n c  d ", 4), (list{"  a", " b", "\n\n", " c", "  d", " "}));
}

TEST(NextWordEnds, DoesNotCutWhereAPieceReachesOver) {
  const std::vector<std::string_view> spaced = {"x y", "a"};
  EXPECT_EQ(words_of(seam_table(spaced), "x y a b", 4), (list{"x y", " a", " b"}));
  const std::vector<std::string_view> lines = {"\nx"};
  EXPECT_EQ(words_of(seam_table(lines), "a\nx b", 4), (list{"a\nx", " b"}));
}

// Blocks and batches end anywhere; the words may not depend on it.
TEST(NextWordEnds, DoesNotDependOnBlocksAndBatches) {
  std::mt19937 random(1);
  const seam_table seams;
  for (int round = 0; round < 500; ++round) {
    std::string text;
    for (std::size_t i = random() % 300; i != 0; --i) text += "ab  \n"[random() % 5];
    list expected;
    for (std::size_t at = 0; at < text.size(); ++at) {
      const char before = at == 0 ? '\0' : text[at - 1];
      const bool cut =
          at == 0 || (text[at] == ' ' && before != ' ') || (text[at] == '\n') != (before == '\n');
      if (cut) expected.emplace_back();
      expected.back() += text[at];
    }
    for (const std::size_t batch : {1U, 3U, 1000U})
      EXPECT_EQ(words_of(seams, text, batch), expected);
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
