// SPDX-License-Identifier: Apache-2.0
//
// A last micro-batch with fewer rows, or none, must be the same on a device as on the host.
#include <millrace/loader/cuda/device_loader.hpp>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/loader/cuda/detail/dlpack_tensor.hpp>

#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/loader_runs.hpp"
#include "support/paths.hpp"

namespace millrace::loader::cuda {
namespace {

using test::fake_cuda;
using testing::IsEmpty;

constexpr std::int64_t ranks = 4;

class ShortDeviceBatch : public testing::TestWithParam<bool> {
 protected:
  // After the first 36 of 60 samples, 24 samples remain. The ranks get 9, 9, 6 and 0 rows.
  static loader_options options(std::int64_t rank) {
    loader_options o;
    o.batch_size = 9;
    o.world_size = ranks;
    o.rank = rank;
    o.drop_last = false;
    return o;
  }
  std::unique_ptr<device_loader> loader_of(const loader_options& options) const {
    const cuda_api* const api = GetParam() ? &fake_cuda::api() : nullptr;
    const device_loader_options device{.no_device = no_device_rule::host};
    return std::visit(
        [&](const auto& each) {
          return std::make_unique<device_loader>(each, options, device, api);
        },
        run_);
  }
  std::unique_ptr<batch_loader> host_of(loader_options options) const {
    options.fields = test::all_fields;
    return test::loader_of(run_, options);
  }

  fake_cuda cuda_{3};

 private:
  test::temp_folder folder_{test::quick_folder()};
  test::any_run run_ = test::run_of(
      {.kind = test::run_kind::instant, .blend = true, .samples = 60, .global_batch = 36},
      test::store_three(folder_, 7));
};

TEST_P(ShortDeviceBatch, IsThatOfTheHost) {
  const owned_stream stream = make_stream(fake_cuda::api());
  test::checking_consumer consumer(cuda_);
  std::deque<test::random_batch> expected;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    SCOPED_TRACE(testing::Message() << "rank " << rank);
    const auto host = host_of(options(rank));
    const auto loader = loader_of(options(rank));
    std::vector<std::int64_t> rows;
    for (const device_batch& found : loader->on(stream.get().value)) {
      const auto wanted = host->next();
      ASSERT_TRUE(wanted.has_value());
      rows.push_back(found.rows());
      EXPECT_EQ(found.rows(), wanted->layout().rows());
      EXPECT_EQ(found.first_sample(), wanted->first_sample());
      EXPECT_THAT(found.positions(), testing::ElementsAreArray(wanted->positions()));
      EXPECT_EQ(loader->consumed_samples(), host->consumed_samples());
      for (const batch_field field : {batch_field::tokens, batch_field::loss_mask}) {
        const auto tensor = to_dlpack(found, field);
        EXPECT_EQ(tensor->tensor.shape[0], found.rows());
        EXPECT_EQ(tensor->tensor.shape[1], found.seq_len());
      }
      if (found.rows() == 0) {
        EXPECT_EQ(found.cu_seqlens_size(), 0);
        EXPECT_EQ(to_dlpack(found, batch_field::cu_seqlens)->tensor.shape[0], 0);
        continue;
      }
      const auto all = [](auto span) { return std::vector(span.begin(), span.end()); };
      expected.push_back({wanted->layout(), {}, 0, {}, {}});
      expected.back().expected = {all(wanted->tokens()),       all(wanted->labels()),
                                  all(wanted->position_ids()), all(wanted->loss_mask()),
                                  all(wanted->cu_seqlens()),   wanted->max_seqlen()};
      if (found.on_device()) {
        consumer.use(found, expected.back(), stream.get().value);
        continue;
      }
      const batch_work work = test::arrays_of(found);
      EXPECT_EQ(test::difference(work, found.cu_seqlens_used(), expected.back().expected), "");
    }
    EXPECT_FALSE(host->next().has_value());
    EXPECT_THAT(rows, testing::ElementsAre(9, rank < 2 ? 9 : rank == 2 ? 6 : 0));
    EXPECT_EQ(loader->consumed_samples(), 60);
    EXPECT_EQ(dataset::write_state(loader->state()), dataset::write_state(host->state()));
  }
  drain(fake_cuda::api(), stream.get().value);
  EXPECT_EQ(consumer.seen(), GetParam() ? std::ssize(expected) : 0);
  EXPECT_THAT(consumer.wrong(), IsEmpty());
  EXPECT_THAT(cuda_.faults(), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Paths, ShortDeviceBatch, testing::Bool(),
                         [](const auto& path) { return path.param ? "device" : "host"; });

}  // namespace
}  // namespace millrace::loader::cuda
