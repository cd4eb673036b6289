// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/ranks/rank_role.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/loader/options.hpp>

#include "support/config_refusal.hpp"

namespace millrace::loader {
namespace {

using testing::HasSubstr;

// Ranks are numbered separately for experts. For attention, the 16 ranks here form a grid of 2 x 2
// x 2 x 2. For experts, the same ranks form a grid of 1 x 4 x 2 x 2.
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

/// One pass of a micro-batch through one chunk of the model on a stage.
struct model_pass {
  std::int64_t micro_batch = 0;
  std::int64_t chunk = 0;
};

/// Runs Megatron's schedule on a stage, pass by pass. First come the forward passes of the warm-up,
/// then forward and backward passes in turn, then the remaining backward passes. Returns the
/// largest number of micro-batches that are in progress at the same time.
std::int64_t held_in_schedule(std::int64_t stage, std::int64_t stages, std::int64_t chunks) {
  std::vector<model_pass> forward;
  std::vector<model_pass> backward;
  for (std::int64_t group = 0; group < 6; ++group) {
    for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
      for (std::int64_t i = 0; i < stages; ++i) {
        forward.push_back({group * stages + i, chunk});
        backward.push_back({group * stages + i, chunks - 1 - chunk});
      }
    }
  }
  const std::int64_t ahead =
      chunks == 1 ? stages - stage - 1 : 2 * (stages - stage - 1) + (chunks - 1) * stages;
  std::map<std::int64_t, std::int64_t> left;  // key: micro-batch; value: remaining backward passes
  std::size_t most = 0;
  std::size_t done = 0;
  for (std::size_t f = 0; f < forward.size(); ++f) {
    left.try_emplace(forward[f].micro_batch, chunks);
    most = std::max(most, left.size());
    if (static_cast<std::int64_t>(f) < ahead) continue;
    const std::int64_t finished = backward[done++].micro_batch;
    if (--left.at(finished) == 0) left.erase(finished);
  }
  return static_cast<std::int64_t>(most);
}

TEST(HeldByStage, IsWhatMegatronsScheduleHolds) {
  for (std::int64_t stages = 1; stages <= 9; ++stages) {
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      for (std::int64_t chunks = 1; chunks <= (stages == 1 ? 1 : 4); ++chunks) {
        EXPECT_EQ(held_by_stage(stage, stages, chunks), held_in_schedule(stage, stages, chunks))
            << "stage " << stage << " of " << stages << ", " << chunks << " chunks";
      }
    }
  }
}

// The default suffices for 8 stages without interleaving.
TEST(HeldByStage, IsAtMostTheDefaultForEightStages) {
  EXPECT_EQ(held_by_stage(0, 8), loader_options{}.held);
  EXPECT_EQ(held_by_stage(7, 8), 1);
  EXPECT_EQ(held_by_stage(0, 8, 2), 16);
  EXPECT_THAT(test::config_refusal([] { held_by_stage(8, 8); }),
              HasSubstr("the pipeline stage is 8, expected 0 to 7"));
  EXPECT_THAT(test::config_refusal([] { held_by_stage(0, 8, 0); }),
              HasSubstr("model_chunks is 0, expected 1 to 1024"));
}

// The job has 2 tensor-parallel, 2 context-parallel, 3 data-parallel and 3 pipeline-parallel ranks.
// Every rank of the first and the last stage reads, and all ranks of a tensor-parallel group read
// the same data. Ranks of the middle stage read nothing.
TEST(RankRole, HasAllRanksOfATensorParallelGroupReadTheSame) {
  const parallel_layout layout(
      {.world_size = 36, .tensor_parallel = 2, .context_parallel = 2, .pipeline_parallel = 3});
  // Key: stage, data rank, first position.
  std::map<std::vector<std::int64_t>, std::int64_t> readers;
  for (std::int64_t rank = 0; rank < 36; ++rank) {
    const rank_role role = role_of(layout, rank, 16);
    EXPECT_EQ(role.place.tp, rank % 2);
    EXPECT_EQ(role.needs.any(), role.place.pp != 1);
    EXPECT_EQ(role.data_ranks, 3);
    EXPECT_EQ(role.data_rank, role.place.dp);
    EXPECT_EQ(role.held, 3 - role.place.pp);
    EXPECT_EQ(role.slices.length(), 8);
    if (!role.needs.any()) continue;
    ++readers[{role.place.pp, role.data_rank, role.slices.position(0)}];
  }
  EXPECT_EQ(readers.size(), 2 * 3 * 2);  // stages x data x context
  for (const auto& [what, ranks] : readers) EXPECT_EQ(ranks, 2) << testing::PrintToString(what);
}

// If document ends are needed, ranks of the middle stages also read them.
TEST(RankRole, BringsDocumentEndsToAllStages) {
  const parallel_layout layout({.world_size = 6, .tensor_parallel = 2, .pipeline_parallel = 3});
  const rank_role role = role_of(layout, 3, 16, {.document_ends = true});
  EXPECT_EQ(role.place.pp, 1);
  EXPECT_EQ(role.needs, (batch_needs{false, false, true}));
}

}  // namespace
}  // namespace millrace::loader
