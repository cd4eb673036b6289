// SPDX-License-Identifier: Apache-2.0
//
// An index may be truncated or become unreadable while a run uses it. The run must then get an
// error that names the place, and the process must survive.
#include <millrace/loader/batch_loader.hpp>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "support/loader_runs.hpp"
#include "support/paths.hpp"

namespace millrace::loader {
namespace {

class LostIndex : public testing::TestWithParam<test::run_kind> {};

TEST_P(LostIndex, EndsTheRunAndNotTheProcess) {
  for (const std::int64_t threads : {1, 3}) {
    const test::temp_folder folder{test::quick_folder()};
    const auto prefixes = test::store_three(folder, 7);
    const test::any_run run = test::run_of({.kind = GetParam(), .samples = 96}, prefixes);
    loader_options options;
    options.batch_size = 2;
    options.threads = threads;
    options.prefetch_samples = 0;  // so the index is read until the end of the run
    options.boundaries = true;
    const auto loader = test::loader_of(run, options);
    ASSERT_TRUE(loader->next().has_value());
    (void)loader->state();  // waits until the run is described
    const std::filesystem::path index = prefixes[0].string() + ".idx";
    std::filesystem::resize_file(index, 0);
    std::int64_t served = 1;
    try {
      while (loader->next()) ++served;
      FAIL() << "served " << served << " batches without an index";
    } catch (const io_error& e) {
      EXPECT_EQ(e.code(), ENODATA);
      EXPECT_EQ(e.path(), index);
      EXPECT_TRUE(e.offset().has_value());
    }
    EXPECT_LT(served, 20);
    EXPECT_FALSE(loader->next().has_value());
  }
}

INSTANTIATE_TEST_SUITE_P(Orders, LostIndex,
                         testing::Values(test::run_kind::megatron, test::run_kind::instant,
                                         test::run_kind::packed),
                         [](const auto& kind) { return std::string(test::name_of(kind.param)); });

}  // namespace
}  // namespace millrace::loader
