// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/fragment_cutter.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>
#include "support/instruction_sets.hpp"

namespace millrace::tokenizer::detail {
namespace {

using list = std::vector<std::string>;

struct cutter_of {
  explicit cutter_of(const std::vector<std::string_view>& pieces, bool joins_spaces = false,
                     instruction_set set = best_instruction_set())
      : seams(pieces), cutter(seams, characters, joins_spaces, set) {}

  // Copies the text to an allocation of exactly its size, so that ASan detects reads past the end.
  list operator()(std::string_view given, std::size_t batch = 5) const {
    const std::vector<char> exact(given.begin(), given.end());
    const std::string_view text(exact.data(), exact.size());
    list fragments;
    std::vector<std::size_t> ends(batch);
    std::size_t at = 0;
    while (const std::size_t count = cutter.next_ends(text, at, ends)) {
      for (std::size_t i = 0; i < count; ++i) {
        fragments.emplace_back(text.substr(at, ends[i] - at));
        at = ends[i];
      }
    }
    EXPECT_EQ(at, text.size());
    return fragments;
  }

  seam_table seams;
  raw_characters characters{charsmap(), true};
  fragment_cutter cutter;
};

// Pieces of a model. Models that are trained without pieces of mixed scripts have similar pieces.
const std::vector<std::string_view> cut_words = {
    "ab", "ba", " a", " b", "  ", "00", "01", "10", "11", "),", ").", "#a", "\xD0\xB6\xD0\xB7"};

TEST(FragmentCutter, CutsWhereWordsEnd) {
  const cutter_of cut(cut_words);
  EXPECT_EQ(cut(""), list{});
  EXPECT_EQ(cut("ab  ba01 a),b"), (list{"ab", "  ba", "01", " a", "),", "b"}));
  EXPECT_EQ(cut("#ab"), (list{"#ab"}));                    // the piece "#a" spans this place
  EXPECT_EQ(cut("a\n\nb"), (list{"a", "\n", "\n", "b"}));  // "\n" always has its own id
  EXPECT_EQ(cut("\xD0\xB6\xD0\xB6 \xD0\xB6."), (list{"\xD0\xB6\xD0\xB6", " \xD0\xB6", "."}));
  EXPECT_EQ(cut("\xE4\xB8\x80\xE4\xB8\x81"), (list{"\xE4\xB8\x80", "\xE4\xB8\x81"}));
}

TEST(FragmentCutter, NeverCutsNextToWhatNormalizationChanges) {
  EXPECT_EQ(cutter_of(cut_words)("ab\xE2\x96\x81."), (list{"ab\xE2\x96\x81."}));
}

TEST(FragmentCutter, LeavesTheLastOfSeveralSpacesToAWord) {
  const std::vector<std::string_view> some = {"ab", " a"};
  EXPECT_EQ(cutter_of(some, true)("a    ab b"), (list{"a", "   ", " ab", " b"}));
  EXPECT_EQ(cutter_of(some, false)("a    ab b"), (list{"a", "    ab", " b"}));
  // The tokenizer makes one space of several. This space can be in one piece with the character
  // before it, here "a ". So the text is not cut there.
  const std::vector<std::string_view> behind = {"ab", "a "};
  EXPECT_EQ(cutter_of(behind, true)("a    ab b"), (list{"a    ab", " b"}));
}

// Windows, batches and vector instructions must not affect cuts.
TEST(FragmentCutter, IsTheSameOnEveryInstructionSet) {
  const std::vector<std::string_view> letters = {"a",
                                                 "b",
                                                 "0",
                                                 "1",
                                                 " ",
                                                 " ",
                                                 ".",
                                                 ")",
                                                 ",",
                                                 "\n",
                                                 "#",
                                                 "z",
                                                 "\xD0\xB6",
                                                 "\xD0\xB7",
                                                 "\xC3\xA9",
                                                 "\xE4\xB8\x80",
                                                 "\xE4\xB8\x81",
                                                 "\xE2\x96\x81",
                                                 "\xF0\x9F\x98\x80"};
  std::vector<std::string_view> pieces = cut_words;
  pieces.emplace_back("\xE4\xB8\x80\xE4\xB8\x81");
  constexpr std::size_t first_wide = 12;
  std::mt19937 random(1);
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    const std::size_t begin = round % 3 == 2 ? first_wide : 0;
    const std::size_t end = round % 3 == 0 ? first_wide - 1 : letters.size();
    for (std::size_t i = random() % 200; i != 0; --i) {
      text += letters[begin + random() % (end - begin)];
    }
    for (const bool joins : {false, true}) {
      const list expected = cutter_of(pieces, joins, instruction_set::portable)(text, 1000);
      for (const auto set : test::instruction_sets) {
        if (!can_run(set)) continue;
        const cutter_of cut(pieces, joins, set);
        for (const std::size_t batch : {1U, 3U, 256U})
          ASSERT_EQ(cut(text, batch), expected) << text;
      }
    }
  }
}

TEST(AsciiSeams, NeverCutsWhatIsKept) {
  std::mt19937 random(1);
  for (const unsigned rarity : {2U, 10U, 1000U}) {
    std::array<ascii_seams::characters, 128> kept{};
    for (auto& set : kept) {
      for (unsigned c = 0; c < 128; ++c) {
        if (random() % rarity == 0) set[c / 64] |= std::uint64_t{1} << (c % 64);
      }
    }
    const ascii_seams seams(kept, {});
    for (unsigned x = 0; x < 128; ++x) {
      for (unsigned y = 0; y < 128; ++y) {
        if ((kept[y][x / 64] >> (x % 64) & 1) == 0) continue;
        EXPECT_FALSE(seams.cuts(static_cast<unsigned char>(x), static_cast<unsigned char>(y)));
      }
    }
  }
}

TEST(AsciiSeams, IsExactForUpToSevenSorts) {
  std::array<ascii_seams::characters, 128> kept{};
  for (unsigned y = 0; y < 128; ++y) kept[y][y % 7 / 4] = std::uint64_t{1} << y % 7;
  const ascii_seams seams(kept, {0, 1});
  for (unsigned x = 0; x < 128; ++x) {
    for (unsigned y = 0; y < 128; ++y) {
      EXPECT_EQ(seams.cuts(static_cast<unsigned char>(x), static_cast<unsigned char>(y)),
                (kept[y][x / 64] >> (x % 64) & 1) == 0);
    }
    EXPECT_EQ((seams.group()[x] & ascii_seams::space_bit) != 0, x == 64);
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
