// SPDX-License-Identifier: Apache-2.0
//
// Stops and resumes runs. Together, the parts must serve the same batches as an uninterrupted run,
// for all orders, sources and numbers of ranks.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/loader/batch_loader.hpp>

#include "support/loader_runs.hpp"
#include "support/paths.hpp"

namespace millrace::loader {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::int64_t global_batch = 24;
constexpr std::int64_t steps = 8;

struct resume_case {
  test::run_kind kind;
  bool blend;
  sampler_type sampler;
};

std::string name_of_case(const testing::TestParamInfo<resume_case>& info) {
  return std::string(test::name_of(info.param.kind)) + (info.param.blend ? "_blend" : "_one") +
         (info.param.sampler == sampler_type::cyclic ? "_cyclic" : "");
}

class LoaderResume : public testing::TestWithParam<resume_case> {
 protected:
  // Creates the run only once, because it is the same for every process of a training run.
  const test::any_run& run() {
    if (!run_) run_ = make_run();
    return *run_;
  }

  test::any_run make_run() const {
    test::run_request request;
    request.kind = GetParam().kind;
    request.blend = GetParam().blend;
    request.samples =
        GetParam().sampler == sampler_type::cyclic ? 3 * global_batch + 5 : steps * global_batch;
    request.global_batch = global_batch;
    request.pad_documents_to = 2;
    return test::run_of(request, prefixes_);
  }

  loader_options options(std::int64_t ranks, std::int64_t rank) const {
    loader_options o;
    o.world_size = ranks;
    o.rank = rank;
    o.batch_size = ranks == 3 ? 4 : 2;  // also changes the size of a micro-batch
    o.global_batch_size = global_batch;
    o.sampler = GetParam().sampler;
    o.fields = test::all_fields;
    return o;
  }

  /// Serves `step_count` steps on a group of ranks, starting from the state `from`. Returns the
  /// rows by sample index.
  using rows = std::map<std::int64_t, test::served_row>;
  rows serve(std::int64_t ranks, const std::string& from, std::int64_t step_count,
             std::string* state) {
    rows all;
    std::string first;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto loader = test::loader_of(run(), options(ranks, rank));
      if (!from.empty()) loader->load_state(from);
      const std::int64_t per_step = global_batch / (ranks * options(ranks, rank).batch_size);
      const std::int64_t begin = loader->consumed_samples() / global_batch;
      for (std::int64_t m = 0; m < step_count * per_step; ++m) {
        const auto batch = loader->next();
        if (!batch) {
          ADD_FAILURE() << "the run ends early";
          return all;
        }
        EXPECT_EQ(batch->step(), begin + m / per_step);
        EXPECT_EQ(batch->micro_batch(), m % per_step);
        EXPECT_EQ(batch->micro_batches(), per_step);
        for (std::int64_t r = 0; r < batch->layout().rows(); ++r) {
          EXPECT_TRUE(all.emplace(batch->first_sample() + r, test::row_of(*batch, r)).second);
        }
      }
      const std::string saved = dataset::write_state(loader->state());
      if (rank == 0) first = saved;
      EXPECT_EQ(saved, first) << "ranks disagree on the state";
    }
    if (state != nullptr) *state = first;
    return all;
  }

 private:
  test::temp_folder folder_{test::quick_folder()};
  std::vector<std::filesystem::path> prefixes_ = test::store_three(folder_, 7);
  std::optional<test::any_run> run_;
};

TEST_P(LoaderResume, EqualsTheUninterruptedRun) {
  const rows whole = serve(4, "", steps, nullptr);
  ASSERT_EQ(whole.size(), static_cast<std::size_t>(steps * global_batch));
  const bool cyclic = GetParam().sampler == sampler_type::cyclic;
  for (const std::int64_t ranks : {4, 2, 3}) {  // as before, half as many, an odd number
    for (const std::int64_t stop : {1, 5}) {
      SCOPED_TRACE(testing::Message() << "stopped at step " << stop << ", then " << ranks);
      std::string state;
      rows served = serve(4, "", stop, &state);
      if (cyclic && ranks != 4) {
        const auto loader = test::loader_of(run(), options(ranks, 0));
        try {
          loader->load_state(state);
          FAIL() << "another number of ranks goes on with cyclic";
        } catch (const config_error& e) {
          EXPECT_THAT(e.what(), AllOf(HasSubstr("the cyclic sampler is"), HasSubstr("was 4"),
                                      HasSubstr("only between epochs")));
        }
        // After the refusal, the loader is still at the start.
        EXPECT_EQ(loader->consumed_samples(), 0);
        EXPECT_TRUE(loader->next().has_value());
        continue;
      }
      const rows rest = serve(ranks, state, steps - stop, nullptr);
      served.insert(rest.begin(), rest.end());
      EXPECT_EQ(served.size(), whole.size());
      EXPECT_TRUE(served == whole);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Orders, LoaderResume,
    testing::Values(resume_case{test::run_kind::megatron, false, sampler_type::single},
                    resume_case{test::run_kind::megatron, true, sampler_type::single},
                    resume_case{test::run_kind::megatron, false, sampler_type::cyclic},
                    resume_case{test::run_kind::megatron, true, sampler_type::cyclic},
                    resume_case{test::run_kind::instant, false, sampler_type::single},
                    resume_case{test::run_kind::instant, true, sampler_type::single},
                    resume_case{test::run_kind::instant, false, sampler_type::cyclic},
                    resume_case{test::run_kind::instant, true, sampler_type::cyclic},
                    resume_case{test::run_kind::packed, false, sampler_type::single},
                    resume_case{test::run_kind::packed, true, sampler_type::single}),
    name_of_case);

}  // namespace
}  // namespace millrace::loader
