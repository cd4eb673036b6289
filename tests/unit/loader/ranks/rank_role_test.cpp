// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/ranks/rank_role.hpp>

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/config_refusal.hpp"

namespace millrace::loader {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Expert ranks have their own numbering: of 16 ranks, attention uses 2 x 2 x 2 x 2 and experts use
// 1 x 4 x 2 x 2.
TEST(ParallelLayout, NumbersExpertsAnew) {
  const parallel_layout layout({.world_size = 16,
                                .tensor_parallel = 2,
                                .context_parallel = 2,
                                .pipeline_parallel = 2,
                                .expert_parallel = 4,
                                .expert_tensor_parallel = 1});
  EXPECT_EQ(layout.attention().sizes().dp, 2);
  EXPECT_EQ(layout.experts().sizes().dp, 2);
  for (std::int64_t rank = 0; rank < 16; ++rank) {
    const parallel_place at = layout.place_of(rank);
    EXPECT_EQ(rank, at.tp + 2 * (at.cp + 2 * (at.dp + 2 * at.pp)));
    EXPECT_EQ(rank, at.ep + 4 * (at.expert_dp + 2 * at.pp));
    EXPECT_EQ(at.expert_tp, 0);
  }
}

TEST(ParallelLayout, SaysWhatIsWrong) {
  const auto layout = [](const parallel_options& options) {
    return test::config_refusal([&] { parallel_layout{options}; });
  };
  EXPECT_THAT(
      layout({.world_size = 12, .tensor_parallel = 8}),
      HasSubstr("world_size is 12, expected a multiple of 8, the product of tensor_parallel"));
  EXPECT_THAT(layout({.world_size = 4, .pipeline_parallel = 8}), HasSubstr("world_size is 4"));
  EXPECT_THAT(layout({.world_size = 4, .context_parallel = 0}), HasSubstr("1, 0 and 1"));
  EXPECT_THAT(layout({.world_size = 8, .expert_parallel = 3}),
              HasSubstr("expert_tensor_parallel, expert_parallel and pipeline_parallel"));
  EXPECT_THAT(layout({.world_size = 16,
                      .tensor_parallel = 2,
                      .pipeline_parallel = 2,
                      .expert_parallel = 4,
                      .order = "tp-cp-ep-pp-dp"}),
              HasSubstr("puts experts on other pipeline stages"));
}

TEST(StageNeeds, AreTokensFirstAndLabelsLast) {
  EXPECT_EQ(needs_of_stage(0, 1), (batch_needs{true, true, false}));
  EXPECT_EQ(needs_of_stage(0, 4), (batch_needs{true, false, false}));
  EXPECT_EQ(needs_of_stage(1, 4), (batch_needs{false, false, false}));
  EXPECT_EQ(needs_of_stage(3, 4), (batch_needs{false, true, false}));
  EXPECT_FALSE(needs_of_stage(2, 4).any());
}

TEST(StageNeeds, AreMoreWithDocumentsAndMultiTokenPrediction) {
  const pipeline_options options = {.document_ends = true, .mtp_stages = {3}};
  EXPECT_EQ(needs_of_stage(0, 4, options), (batch_needs{true, false, true}));
  EXPECT_EQ(needs_of_stage(1, 4, options), (batch_needs{false, false, true}));
  EXPECT_EQ(needs_of_stage(3, 4, options), (batch_needs{true, true, true}));
  EXPECT_THAT(test::config_refusal([&] { needs_of_stage(0, 3, options); }),
              HasSubstr("a stage of multi-token prediction is 3, expected 0 to 2"));
  EXPECT_THAT(test::config_refusal([] { needs_of_stage(4, 4); }),
              HasSubstr("the pipeline stage is 4, expected 0 to 3"));
}

// A job of 2 x 2 x 3 x 3 ranks. A rank that reads sends to the other ranks of its group. No rank
// gets a batch twice, and middle pipeline stages get none.
TEST(RankRole, GivesEachRankThatNeedsThemItsBatchesOnce) {
  const parallel_layout layout(
      {.world_size = 36, .tensor_parallel = 2, .context_parallel = 2, .pipeline_parallel = 3});
  std::map<std::int64_t, std::int64_t> source_by_sender;
  std::int64_t readers = 0;
  for (std::int64_t rank = 0; rank < 36; ++rank) {
    const rank_role role = role_of(layout, rank, 16);
    const bool middle = role.place.pp == 1;
    EXPECT_EQ(role.needs.any(), !middle);
    EXPECT_EQ(role.reads, !middle && role.place.tp == 0);
    EXPECT_EQ(role.source, !middle && role.place.tp == 1 ? rank - 1 : -1);
    EXPECT_EQ(role.data_ranks, 3);
    EXPECT_EQ(role.data_rank, role.place.dp);
    EXPECT_EQ(role.slices.length(), 8);
    if (role.reads) {
      ++readers;
      EXPECT_THAT(role.receivers, ElementsAre(rank + 1));
    } else {
      EXPECT_THAT(role.receivers, IsEmpty());
    }
  }
  EXPECT_EQ(readers, 3 * 2 * 2);  // data x context x stages
}

TEST(RankRole, MayHaveAllOfAGroupRead) {
  const parallel_layout layout({.world_size = 8, .tensor_parallel = 4});
  for (std::int64_t rank = 0; rank < 8; ++rank) {
    const rank_role role = role_of(layout, rank, 16, tensor_sharing::each_reads);
    EXPECT_TRUE(role.reads);
    EXPECT_EQ(role.source, -1);
    EXPECT_THAT(role.receivers, IsEmpty());
    EXPECT_EQ(role.data_rank, rank / 4);
    EXPECT_EQ(role.data_ranks, 2);
  }
}

// If document ends are needed, the middle stages receive them too.
TEST(RankRole, BringsDocumentEndsToAllStages) {
  const parallel_layout layout({.world_size = 6, .tensor_parallel = 2, .pipeline_parallel = 3});
  const rank_role role = role_of(layout, 2, 16, tensor_sharing::broadcast, {.document_ends = true});
  EXPECT_EQ(role.place.pp, 1);
  EXPECT_TRUE(role.reads);
  EXPECT_EQ(role.needs, (batch_needs{false, false, true}));
  EXPECT_THAT(role.receivers, ElementsAre(3));
}

// For any order of ranks, the source is the first rank of the tensor-parallel group.
TEST(RankRole, FollowsTheOrderOfRanks) {
  const parallel_layout layout({.world_size = 8, .tensor_parallel = 2, .order = "dp-tp"});
  const rank_role reader = role_of(layout, 1, 8);
  EXPECT_THAT(reader.receivers, ElementsAre(5));
  EXPECT_EQ(role_of(layout, 5, 8).source, 1);
}

}  // namespace
}  // namespace millrace::loader
