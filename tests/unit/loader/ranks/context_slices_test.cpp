// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/ranks/context_slices.hpp>

#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/config_refusal.hpp"
#include "support/seed.hpp"

namespace millrace::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using numbers = std::vector<std::int64_t>;

// A rank's slices are one chunk of each half of the row, as in the example in the header.
TEST(ContextSlices, AreAChunkOfEachHalf) {
  const context_slices first(16, 2, 0);
  EXPECT_THAT(first.slices(), ElementsAre(row_slice{0, 4}, row_slice{12, 4}));
  EXPECT_THAT(first.reads(), ElementsAre(row_slice{0, 5}, row_slice{12, 5}));
  EXPECT_EQ(first.length(), 8);
  EXPECT_EQ(first.position(3), 3);
  EXPECT_EQ(first.position(4), 12);

  // The two chunks of the last rank are adjacent, so they are read as a single range. The token
  // where they meet is read only once.
  const context_slices last(16, 2, 1);
  EXPECT_THAT(last.slices(), ElementsAre(row_slice{4, 4}, row_slice{8, 4}));
  EXPECT_THAT(last.reads(), ElementsAre(row_slice{4, 9}));
}

TEST(ContextSlices, AreTheRowWithoutContextParallelism) {
  const context_slices whole(7, 1, 0);
  EXPECT_EQ(whole.length(), 7);
  EXPECT_THAT(whole.reads(), ElementsAre(row_slice{0, 8}));
  EXPECT_EQ(whole.position(6), 6);
}

TEST(ContextSlices, SayWhatIsWrong) {
  EXPECT_THAT(test::config_refusal([] { context_slices(18, 4, 0); }),
              HasSubstr("seq_len is 18, expected a multiple of 8, twice the context parallelism"));
  EXPECT_THAT(test::config_refusal([] { context_slices(0, 1, 0); }), HasSubstr("seq_len is 0"));
  EXPECT_THAT(test::config_refusal([] { context_slices(16, 0, 0); }),
              HasSubstr("context_parallel is 0"));
  EXPECT_THAT(test::config_refusal([] { context_slices(16, 2, 2); }),
              HasSubstr("the context-parallel rank is 2, expected 0 to 1"));
}

// Fields must be the same in both ways: made from the whole row and then cut, or made only from the
// tokens that the rank reads. All ranks together must have each position of the row exactly once.
TEST(ContextSlices, GiveEachRankTheLabelsOfTheWholeRow) {
  std::mt19937_64 random(test::seed(1));
  for (int round = 0; round < 200; ++round) {
    const auto cp = static_cast<std::int64_t>(1 + random() % 6);
    const std::int64_t seq_len = 2 * cp * static_cast<std::int64_t>(1 + random() % 9);
    numbers text(static_cast<std::size_t>(seq_len + 1));
    for (auto& token : text) token = static_cast<std::int64_t>(random() % 1000);
    const numbers tokens(text.begin(), text.end() - 1);
    const numbers labels(text.begin() + 1, text.end());
    numbers positions(tokens.size());
    std::iota(positions.begin(), positions.end(), 0);

    numbers seen;
    for (std::int64_t rank = 0; rank < cp; ++rank) {
      const context_slices slices(seq_len, cp, rank);
      const auto cut = [&](const numbers& whole) {
        numbers part(static_cast<std::size_t>(slices.length()));
        slices.take(std::span<const std::int64_t>(whole), std::span(part));
        return part;
      };
      // Make fields only from the tokens that are read. Each token keeps its position in the file.
      numbers readable(text.size(), -1);
      for (const row_slice& each : slices.reads()) {
        for (std::int64_t i = each.first; i < each.first + each.length; ++i) {
          readable[static_cast<std::size_t>(i)] = text[static_cast<std::size_t>(i)];
        }
      }
      numbers own_tokens;
      numbers own_labels;
      numbers own_positions;
      for (std::int64_t i = 0; i < slices.length(); ++i) {
        const auto at = static_cast<std::size_t>(slices.position(i));
        own_tokens.push_back(readable[at]);
        own_labels.push_back(readable[at + 1]);
        own_positions.push_back(slices.position(i));
      }
      EXPECT_EQ(own_tokens, cut(tokens));
      EXPECT_EQ(own_labels, cut(labels));
      EXPECT_EQ(own_positions, cut(positions));
      seen.insert(seen.end(), own_positions.begin(), own_positions.end());
    }
    std::ranges::sort(seen);
    EXPECT_EQ(seen, positions);
  }
}

}  // namespace
}  // namespace millrace::loader
