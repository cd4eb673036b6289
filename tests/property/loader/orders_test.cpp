// SPDX-License-Identifier: Apache-2.0
//
// Compares the rows of every order, with and without a blend, with expected rows. The test gathers
// the expected rows one at a time from mapped datasets.
#include <algorithm>
#include <cstdint>
#include <random>

#include <gtest/gtest.h>

#include <millrace/loader/batch_loader.hpp>

#include "support/loader_runs.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"

namespace millrace::loader {
namespace {

TEST(LoaderOrders, ServeTheBytesThatDatasetSays) {
  std::mt19937_64 random(test::seed(21));
  const auto from_to = [&](std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(random);
  };
  const auto flip = [&] { return from_to(0, 1) == 1; };
  for (int round = 0; round < 60; ++round) {
    const test::temp_folder folder(test::quick_folder());
    const auto prefixes = test::store_three(folder, random());
    test::run_request request;
    request.kind = static_cast<test::run_kind>(round % 3);
    request.blend = flip();
    request.seq_len = from_to(2, 40);
    request.pad_documents_to = from_to(1, 4);
    request.seq_len += request.pad_documents_to - request.seq_len % request.pad_documents_to;
    request.samples = from_to(8, 100);
    loader_options options;
    options.batch_size = from_to(1, 4);
    options.world_size = from_to(1, 2);
    options.rank = from_to(0, options.world_size - 1);
    options.look_ahead = from_to(1, 3);
    options.prefetch_samples = from_to(0, 16);
    options.threads = from_to(1, 2);
    options.fields = test::all_fields;
    options.field_rules.eod = from_to(0, 300);
    options.field_rules.reset_position_ids = flip();
    options.field_rules.eod_mask_loss = flip();
    if (flip()) options.field_rules.pad = from_to(0, 300);
    if (flip()) options.sampler = sampler_type::cyclic;
    SCOPED_TRACE(testing::Message()
                 << "round " << round << ": " << name_of(request.kind)
                 << (request.blend ? " blend" : "") << ", seq_len " << request.seq_len
                 << ", pad to " << request.pad_documents_to << ", batch " << options.batch_size);
    const test::any_run run = test::run_of(request, prefixes);
    const auto loader = test::loader_of(run, options);
    std::int64_t served = 0;
    for (const auto& batch : *loader) {
      test::expect_rows(run, batch, options.field_rules);
      ASSERT_FALSE(testing::Test::HasFailure());
      if (++served == 30) break;
    }
    if (options.sampler == sampler_type::single) {
      EXPECT_EQ(served, std::min<std::int64_t>(30, loader->micro_batches()));
    } else {
      EXPECT_EQ(served, 30);
    }
  }
}

}  // namespace
}  // namespace millrace::loader
