// SPDX-License-Identifier: Apache-2.0
//
// Tests runs whose last micro-batch has few rows, or none on some ranks. The samples that do not
// fill a whole micro-batch must be served exactly once. A run can resume from a state before or
// after this micro-batch.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/loader/batch_loader.hpp>

#include "support/loader_runs.hpp"
#include "support/paths.hpp"

namespace millrace::loader {
namespace {

class ShortBatch : public testing::TestWithParam<test::run_kind> {
 protected:
  /// Number of samples of the run. It can be one more than requested, because Megatron's blends
  /// have a few extra samples.
  std::int64_t samples() const { return test::end_of(run_); }

  loader_options options(std::int64_t ranks, std::int64_t rank) const {
    loader_options o;
    o.batch_size = 4;
    o.world_size = ranks;
    o.rank = rank;
    o.global_batch_size = 1680;  // a multiple of batch_size * world_size in all tests
    o.threads = 1 + rank % 2;
    o.drop_last = false;
    o.fields = test::all_fields;
    return o;
  }

  /// Serves up to `most` micro-batches per rank, starting from the state `from`, and compares each
  /// row with that of a model. Sets `state` to the final state, which must be the same on all
  /// ranks.
  /// @return how often each position was served
  std::vector<int> serve(std::int64_t ranks, const std::string& from, std::int64_t most,
                         std::string& state) {
    std::vector<int> times(static_cast<std::size_t>(samples()));
    std::string first;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto loader = test::loader_of(run_, options(ranks, rank));
      if (!from.empty()) loader->load_state(from);
      for (std::int64_t m = 0; m < most; ++m) {
        const auto batch = loader->next();
        if (!batch) break;
        const std::int64_t left = samples() - batch->first_sample();
        EXPECT_EQ(batch->layout().rows(), std::min<std::int64_t>(4, left));
        EXPECT_EQ(std::ssize(batch->positions()), batch->layout().rows());
        EXPECT_EQ(std::ssize(batch->tokens()), batch->layout().rows() * batch->layout().seq_len());
        test::expect_rows(run_, *batch, {});
        for (const std::int64_t position : batch->positions()) {
          ++times[static_cast<std::size_t>(position)];
        }
      }
      const std::string saved = dataset::write_state(loader->state());
      if (rank == 0) first = saved;
      EXPECT_EQ(saved, first) << "ranks disagree on the state";
    }
    state = first;
    return times;
  }

 private:
  test::temp_folder folder_{test::quick_folder()};
  test::any_run run_ =
      test::run_of({.kind = GetParam(), .blend = true, .samples = 53, .global_batch = 1680},
                   test::store_three(folder_, 7));
};

TEST_P(ShortBatch, HoldsWhatIsLeftWhateverTheRanks) {
  constexpr std::int64_t all = 1000;
  const std::vector<int> once(static_cast<std::size_t>(samples()), 1);
  // With 20 ranks, some ranks get no row at all.
  for (const std::int64_t ranks : {1, 2, 3, 4, 7, 20}) {
    SCOPED_TRACE(testing::Message() << ranks << " ranks");
    std::string end;
    EXPECT_EQ(serve(ranks, "", all, end), once);
    EXPECT_EQ(dataset::parse_state(end).consumed_samples, samples());

    // After the short micro-batch, the run is over for any number of ranks.
    std::string state;
    EXPECT_EQ(serve(2, end, all, state), std::vector<int>(once.size()));
    EXPECT_EQ(state, end);

    // A run that resumes from a state before the short micro-batch serves it again, even with a
    // single rank.
    std::string middle;
    std::vector<int> served = serve(ranks, "", 1, middle);
    for (const std::int64_t others : {ranks, std::int64_t{1}}) {
      const std::vector<int> rest = serve(others, middle, all, state);
      std::vector<int> sum = served;
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += rest[i];
      EXPECT_EQ(sum, once);
      EXPECT_EQ(state, end);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, ShortBatch,
                         testing::Values(test::run_kind::megatron, test::run_kind::instant,
                                         test::run_kind::packed),
                         [](const auto& kind) { return std::string(test::name_of(kind.param)); });

}  // namespace
}  // namespace millrace::loader
