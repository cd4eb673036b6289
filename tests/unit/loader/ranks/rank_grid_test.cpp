// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/ranks/rank_grid.hpp>

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/config_refusal.hpp"

namespace millrace::loader {
namespace {

using testing::HasSubstr;
using ranks = std::vector<std::vector<std::int64_t>>;

// Megatron's formula, which is written out here, gives the expected numbers of the ranks.
TEST(RankGrid, NumbersRanksAsMegatronDoes) {
  const axis_values sizes = {.tp = 2, .cp = 3, .ep = 1, .dp = 4, .pp = 5};
  const rank_grid grid(sizes);
  ASSERT_EQ(grid.size(), 120);
  for (std::int64_t rank = 0; rank < 120; ++rank) {
    const axis_values at = grid.place_of(rank);
    EXPECT_EQ(rank, at.tp + 2 * (at.cp + 3 * (at.dp + 4 * at.pp)));
    EXPECT_EQ(at.ep, 0);
    EXPECT_EQ(grid.rank_of(at), rank);
  }
}

// The documentation of initialize_model_parallel has an example with these groups: 16 GPUs, tensor
// parallel size 2, pipeline parallel size 4.
TEST(RankGrid, HasTheGroupsOfMegatronsExample) {
  const rank_grid grid({.tp = 2, .dp = 2, .pp = 4});
  EXPECT_EQ(grid.groups("tp"),
            (ranks{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}, {10, 11}, {12, 13}, {14, 15}}));
  EXPECT_EQ(grid.groups("pp"),
            (ranks{{0, 4, 8, 12}, {1, 5, 9, 13}, {2, 6, 10, 14}, {3, 7, 11, 15}}));
  EXPECT_EQ(grid.groups("dp"),
            (ranks{{0, 2}, {1, 3}, {4, 6}, {5, 7}, {8, 10}, {9, 11}, {12, 14}, {13, 15}}));
}

TEST(RankGrid, TakesAnyOrderAndCase) {
  const rank_grid grid({.tp = 2, .dp = 3}, "DP-tp", 10);
  EXPECT_EQ(grid.groups("tp"), (ranks{{10, 13}, {11, 14}, {12, 15}}));
  EXPECT_EQ(grid.groups("tp-dp"), (ranks{{10, 11, 12, 13, 14, 15}}));
  EXPECT_EQ(grid.groups("pp"), (ranks{{10}, {11}, {12}, {13}, {14}, {15}}));
  EXPECT_EQ(grid.rank_of({0, 0, 0, 2, 0}), 12);
}

// For any combination of axes, each rank must be in exactly one group.
TEST(RankGrid, PutsEachRankIntoOneGroup) {
  const rank_grid grid({.tp = 2, .cp = 3, .dp = 2, .pp = 4}, "pp-cp-tp-dp");
  for (const char* axes : {"tp", "cp-pp", "dp-tp-cp", "ep", "tp-cp-ep-dp-pp"}) {
    std::set<std::int64_t> all;
    for (const auto& group : grid.groups(axes)) all.insert(group.begin(), group.end());
    EXPECT_EQ(all.size(), 48) << axes;
    EXPECT_EQ(*all.rbegin(), 47) << axes;
  }
}

TEST(RankGrid, SaysWhatIsWrong) {
  const auto grid = [](const axis_values& sizes, const char* order, std::int64_t offset = 0) {
    return test::config_refusal([&] { rank_grid(sizes, order, offset); });
  };
  EXPECT_THAT(grid({.tp = 0}, "tp"), HasSubstr("tp is 0, expected 1 or more"));
  EXPECT_THAT(grid({.tp = 2, .dp = 4}, "tp-pp"), HasSubstr("'tp-pp' has no dp, whose size is 4"));
  EXPECT_THAT(grid({}, "tp-dp-tp"), HasSubstr("names tp twice"));
  EXPECT_THAT(grid({}, "tp-xp"), HasSubstr("'xp' in 'tp-xp' is not an axis, expected tp, cp"));
  EXPECT_THAT(grid({}, ""), HasSubstr("has an empty axis"));
  EXPECT_THAT(grid({}, "tp-"), HasSubstr("has an empty axis"));
  EXPECT_THAT(grid({}, "tp--dp"), HasSubstr("'' in 'tp--dp' is not an axis"));
  EXPECT_THAT(grid({.cp = 2, .ep = 4}, "tp-cp-ep-dp-pp"), HasSubstr("cp is 2 and ep 4"));
  EXPECT_THAT(grid({}, "tp", -1), HasSubstr("offset of ranks is -1"));
  constexpr std::int64_t many = std::int64_t{1} << 40;
  EXPECT_THAT(grid({.tp = many, .dp = many}, "tp-dp"), HasSubstr("more than 2^62 ranks"));

  const rank_grid small({.tp = 2}, "tp", 4);
  EXPECT_THAT(test::config_refusal([&] { small.place_of(3); }),
              HasSubstr("rank is 3, expected 4 to 5"));
  EXPECT_THAT(test::config_refusal([&] { small.place_of(6); }),
              HasSubstr("rank is 6, expected 4 to 5"));
  EXPECT_THAT(test::config_refusal([&] {
                small.rank_of({2, 0, 0, 0, 0});
              }),
              HasSubstr("the place along tp is 2, expected 0 to 1"));
  EXPECT_THAT(test::config_refusal([&] { small.groups("tp-up"); }),
              HasSubstr("'up' in 'tp-up' is not an axis"));
}

}  // namespace
}  // namespace millrace::loader
