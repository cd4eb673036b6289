// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/simulate/process_memory.hpp>
#include <millrace/loader/detail/simulate/simulate_rank.hpp>

#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/loader/detail/io/mmap_reader.hpp>
#include <millrace/loader/detail/io/pread_reader.hpp>
#include <millrace/loader/detail/io/throttled_reader.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>

#include "unit/loader/stored_tokens.hpp"

namespace millrace::loader {
namespace {

using namespace std::chrono_literals;

constexpr std::int64_t slots_of(const loader_options& options) {
  return options.look_ahead + 1 + options.threads;
}

loader_options options_of(const throttle& storage) {
  loader_options options;
  options.batch_size = 2;
  options.seq_len = 64;
  options.fields = no_host_fields;
  options.reader = [storage](const std::vector<data_file>& files) {
    return std::make_unique<throttled_reader>(std::make_unique<mmap_reader>(files), storage);
  };
  return options;
}

class SimulateRank : public testing::Test {
 protected:
  simulated_rank run(const loader_options& options, const simulate_options& simulated) {
    batch_loader loader(data_, options);
    return simulate_rank(loader, slots_of(options), simulated);
  }

  test::stored_tokens<> stored_{200'000};
  const dataset::indexed_dataset& data_ = stored_.data();
};

/// Expects that the utilization and the break-even step time of a run with an injected latency are
/// close to the closed form. Close means within 15 %, because other programs may take the
/// processor. On an otherwise idle machine, MILLRACE_CLOSE_PERCENT can set a smaller limit. The
/// model uses the measured compute time, because a busy machine computes slightly longer than
/// requested. One close run is enough.
void expect_closed_form(const std::function<simulated_rank()>& run, const pipeline_model& model) {
  const char* const percent = std::getenv("MILLRACE_CLOSE_PERCENT");
  const double close = (percent != nullptr ? std::stod(percent) : 15) / 100;
  double worst = 1;
  double worst_even = 1;
  for (int attempt = 0; attempt < 5 && std::max(worst, worst_even) > close; ++attempt) {
    const simulated_rank found = run();
    const double compute =
        static_cast<double>(found.compute_ns) * 1e-9 / static_cast<double>(found.steps - 1);
    const double expected = model.utilisation(compute);
    const double even = static_cast<double>(found.break_even_ns()) * 1e-9;
    worst = std::min(worst, std::abs(found.utilisation() / expected - 1));
    worst_even = std::min(worst_even, std::abs(even / model.break_even() - 1));
    std::cout << "utilisation " << found.utilisation() << ", expected " << expected
              << "; breaks even at " << even << " s, expected " << model.break_even() << '\n';
  }
  EXPECT_LE(worst, close);
  EXPECT_LE(worst_even, close);
}

TEST_F(SimulateRank, IsTheClosedFormWhereLatencyIsHidden) {
  const loader_options options = options_of({.latency = 60ms, .sees_prefetch = false});
  expect_closed_form(
      [&] { return run(options, {.steps = 16, .compute = 100ms, .full_speed_steps = 12}); },
      {.make_s = 0.060, .threads = 1, .slots = slots_of(options)});
}

TEST_F(SimulateRank, IsTheClosedFormWhereLatencyShows) {
  const loader_options options = options_of({.latency = 100ms, .sees_prefetch = false});
  expect_closed_form(
      [&] { return run(options, {.steps = 20, .compute = 40ms, .full_speed_steps = 8}); },
      {.make_s = 0.100, .threads = 1, .slots = slots_of(options)});
}

// The closed form must hold with several threads. The ring is full at first. Only after these
// batches are used up does the loader limit the speed.
TEST_F(SimulateRank, IsTheClosedFormWithSeveralThreads) {
  loader_options options = options_of({.latency = 180ms, .sees_prefetch = false});
  options.threads = 3;
  options.look_ahead = 1;
  expect_closed_form(
      [&] { return run(options, {.steps = 61, .compute = 30ms, .full_speed_steps = 30}); },
      {.make_s = 0.180, .threads = 3, .slots = slots_of(options)});
}

// The closed form must hold if reads are announced to the storage. They are announced three batches
// in advance, so four reads overlap.
TEST_F(SimulateRank, IsTheClosedFormWhereStorageIsToldAhead) {
  loader_options options = options_of({.latency = 200ms});
  options.prefetch_samples = 6;
  expect_closed_form(
      [&] { return run(options, {.steps = 61, .compute = 25ms, .full_speed_steps = 28}); },
      {.make_s = 0.200, .threads = 1, .slots = slots_of(options), .announced = 3});
}

// The checksums of batches must not depend on how the batches were read, and they must cover every
// byte.
TEST_F(SimulateRank, ChecksumsEveryBatch) {
  const simulate_options simulated = {.steps = 20, .full_speed_steps = 0};
  const simulated_rank slow = run(options_of({.latency = 1ms}), simulated);
  loader_options options = options_of({});
  options.reader = [](const std::vector<data_file>& files) {
    return std::make_unique<pread_reader>(files);
  };
  options.threads = 2;
  const simulated_rank quick = run(options, simulated);
  EXPECT_EQ(slow.checksum, quick.checksum);
  EXPECT_EQ(slow.bytes, quick.bytes);

  std::uint32_t expected = 0;
  batch_loader loader(data_, options);
  for (int i = 0; i < 20; ++i) expected = formats::crc32c(loader.next()->bytes(), expected);
  EXPECT_EQ(slow.checksum, expected);

  options.consumed_samples = 2;
  EXPECT_NE(run(options, simulated).checksum, slow.checksum);
}

// The first step must be timed separately. The time that the caller spends between steps counts as
// elapsed time, but neither as compute time nor as waiting time.
TEST_F(SimulateRank, DoesNotCountTheFirstStep) {
  int steps = 0;
  const auto after_step = [&] {
    if (++steps == 1) std::this_thread::sleep_for(50ms);
  };
  const std::int64_t begin = now_ns();
  const simulated_rank found =
      run(options_of({}),
          {.steps = 11, .compute = 2ms, .full_speed_steps = 0, .after_step = after_step});
  const std::int64_t whole = now_ns() - begin;
  EXPECT_EQ(steps, 11);
  EXPECT_EQ(found.steps, 11);
  EXPECT_EQ(found.waits.count, 10);
  EXPECT_GE(found.first_step_ns, 2'000'000);
  EXPECT_GE(found.compute_ns, 10 * 2'000'000);
  EXPECT_GE(found.elapsed_ns, 50'000'000 + found.compute_ns + found.waits.total_ns);
  EXPECT_LE(found.first_step_ns + found.elapsed_ns, whole);
}

TEST_F(SimulateRank, RefusesARunThatIsTooShort) {
  const loader_options options = options_of({});
  EXPECT_THROW(run(options, {.steps = 1}), config_error);
  try {
    run(options, {.steps = 1'000'000});
    FAIL() << "accepted";
  } catch (const config_error& e) {
    EXPECT_THAT(e.what(), testing::HasSubstr("micro-batches per rank, expected 1000"));
  }
}

TEST(ProcessMemory, IsKnown) {
  const process_memory before = memory_of_process();
  EXPECT_GT(before.own, 0);
  EXPECT_GE(before.resident, before.own);
  EXPECT_GE(before.peak, before.resident);
  std::vector<char> block(std::size_t{64} << 20, 'x');
  EXPECT_GE(memory_of_process().own - before.own, std::int64_t{60} << 20);
  EXPECT_EQ(block.back(), 'x');
  EXPECT_GT(memory_of_machine(), before.peak);
}

}  // namespace
}  // namespace millrace::loader
