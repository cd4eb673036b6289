// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/cuda/detail/device_pipe.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/fake_cuda/pinned_source.hpp"
#include "support/seed.hpp"

namespace millrace::loader::cuda {
namespace {

using namespace std::chrono_literals;
using test::fake_cuda;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<test::random_batch> batches_of(std::size_t count, const test::random_shape& shape,
                                           const batch_rules& rules, std::uint64_t seed = 5) {
  std::mt19937_64 random(seed);
  std::vector<test::random_batch> result;
  for (std::size_t i = 0; i < count; ++i) {
    result.push_back(test::make_random_batch(random, shape, rules));
  }
  return result;
}

template <class Error, class Act>
std::string message_of(Act act) {
  try {
    act();
  } catch (const Error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

// The pipe must serve the same fields as `dataset` makes, even if the device is late. All work has
// random delays. The consumer holds batches for a while and releases them out of order.
TEST(DevicePipe, ServesWhatDatasetMakesHoweverLateTheDeviceIs) {
  std::mt19937_64 random(test::seed(31));
  for (const batch_rules& rules : test::all_rules()) {
    fake_cuda cuda(random());
    cuda.jitter(std::chrono::microseconds(random() % 300));
    test::random_shape shape{.rows = 2, .seq_len = 50};
    if (random() % 2 == 0) shape.width = token_width::i32;
    shape.extra_token = random() % 2 == 0;
    test::pinned_source source(&fake_cuda::api(), batches_of(15, shape, rules, random()));
    const owned_stream stream = make_stream(fake_cuda::api());
    const cuda::stream on = stream.get().value;
    test::checking_consumer consumer(cuda);
    {
      device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout,
                       {.look_ahead = 3, .rules = rules}, source.source());
      std::vector<device_batch> held;
      std::size_t number = 0;
      while (auto batch = pipe.next(on)) {
        EXPECT_TRUE(batch->on_device());
        EXPECT_EQ(batch->micro_batch(), static_cast<std::int64_t>(number));
        EXPECT_EQ(batch->step(), static_cast<std::int64_t>(number) / 2);
        EXPECT_EQ(batch->first_sample(), 3 * static_cast<std::int64_t>(number));
        EXPECT_THAT(batch->positions(), testing::ElementsAre(static_cast<std::int64_t>(number), 8));
        EXPECT_THAT(batch->sources(), testing::ElementsAre(1, static_cast<std::int64_t>(number)));
        EXPECT_EQ(batch->max_seqlen(), source.batches()[number].expected.max_seqlen);
        consumer.use(*batch, source.batches()[number++], on);
        held.push_back(std::move(*batch));
        if (held.size() == 4) held.erase(held.begin() + static_cast<std::ptrdiff_t>(random() % 4));
      }
      EXPECT_EQ(number, 15U);
    }
    drain(fake_cuda::api(), on);
    EXPECT_EQ(consumer.seen(), 15);
    EXPECT_THAT(consumer.wrong(), IsEmpty());
    EXPECT_THAT(cuda.faults(), IsEmpty());
  }
}

// Requests 32-bit ids, segment ids and a fixed number of boundaries. Tests plain and packed rows,
// on a device and on the host.
TEST(DevicePipe, ServesTheFieldsInTheFormThatIsAskedFor) {
  std::mt19937_64 random(test::seed(18));
  const wanted_fields fields = {
      .segment_ids = true, .ids = id_width::i32, .cu_seqlens_size = 2 * 700 + 1};
  for (const batch_rules& rules : test::all_rules()) {
    for (const bool device : {true, false}) {
      fake_cuda cuda(random());
      test::random_shape shape{.rows = 2, .seq_len = 700, .longest = 60};
      shape.packed = random() % 2 == 0;
      shape.masked = random() % 2 == 0;
      const cuda_api* const api = device ? &fake_cuda::api() : nullptr;
      test::pinned_source source(api, batches_of(4, shape, rules, random()));
      const owned_stream stream = make_stream(fake_cuda::api());
      const cuda::stream on = stream.get().value;
      test::checking_consumer consumer(cuda);
      device_options options;
      options.no_device = no_device_rule::host;
      options.fields = fields;
      options.rules = rules;
      device_pipe pipe(api, source.batches()[0].layout, options, source.source());
      std::size_t number = 0;
      for (const device_batch& batch : pipe.on(on)) {
        const test::random_batch& wanted = source.batches()[number++];
        EXPECT_EQ(batch.ids(), id_width::i32);
        EXPECT_NE(batch.segment_ids(), nullptr);
        EXPECT_EQ(batch.cu_seqlens_size(), 2 * 700 + 1);
        if (device) {
          consumer.use(batch, wanted, on);
        } else {
          EXPECT_EQ(
              test::difference(test::arrays_of(batch), batch.cu_seqlens_used(), wanted.expected),
              "");
        }
      }
      EXPECT_EQ(number, 4U);
      drain(fake_cuda::api(), on);
      EXPECT_THAT(consumer.wrong(), IsEmpty());
      EXPECT_THAT(cuda.faults(), IsEmpty());
    }
  }
}

TEST(DevicePipe, RefusesBatchesThatItsFieldsHaveNoPlaceFor) {
  fake_cuda cuda;
  const auto message_for = [&](const wanted_fields& fields, bool boundaries, bool packed = false) {
    test::pinned_source source(&fake_cuda::api(),
                               batches_of(1, {.packed = packed, .longest = 4}, {}));
    batch_source changed = source.source();
    if (!boundaries) {
      changed.next = [next = changed.next] {
        auto staged = next();
        staged->boundaries = 0;
        return staged;
      };
    }
    device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {.fields = fields}, changed);
    return message_of<config_error>([&] { (void)pipe.next(nullptr); });
  };
  EXPECT_THAT(message_for({.cu_seqlens_size = 5}, true),
              testing::MatchesRegex("a batch has [0-9]+ entries of cu_seqlens, expected at most "
                                    "cu_seqlens_size = 5: raise cu_seqlens_size"));
  EXPECT_EQ(message_for({.segment_ids = true}, false),
            "segment_ids are wanted, but a batch has no boundaries: make the source fill in "
            "boundaries");
  EXPECT_EQ(message_for({}, false, true),
            "rows are packed, but a batch has no boundaries: make the source fill in boundaries");
}

TEST(DevicePipe, CopiesOnceABatchAndHardlyMoreThanItsTokens) {
  fake_cuda cuda;
  constexpr std::int64_t batches = 4;
  // The documents have some hundreds of tokens, as in real corpora.
  test::pinned_source source(
      &fake_cuda::api(),
      batches_of(batches, {.rows = 8, .seq_len = 4096, .short_rows = false}, {}));
  const owned_stream stream = make_stream(fake_cuda::api());
  device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
  for (const device_batch& batch : pipe.on(stream.get().value)) EXPECT_EQ(batch.rows(), 8);
  EXPECT_EQ(cuda.calls_of("cudaMemcpyAsync"), batches);
  EXPECT_EQ(cuda.calls_of("kernel launch"), batches);
  const double a_token = static_cast<double>(cuda.bytes_to_device()) / (batches * 8 * 4096);
  EXPECT_LE(a_token, 2.02);
  const pipe_report report = pipe.report();
  EXPECT_EQ(report.bytes_to_device, cuda.bytes_to_device());
  EXPECT_EQ(report.tokens, batches * 8 * 4096);
  EXPECT_EQ(report.text().find("batches are made on device 0 of 1: 4 slots, 4 batches, 131072"), 0U)
      << report.text();
}

TEST(DevicePipe, NeverWaitsForTheDeviceOnTheConsumersThread) {
  fake_cuda cuda;
  test::pinned_source source(&fake_cuda::api(), batches_of(20, {}, {}));
  const owned_stream stream = make_stream(fake_cuda::api());
  device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
  for (const device_batch& batch : pipe.on(stream.get().value)) EXPECT_TRUE(batch.on_device());
  for (const fake_cuda::call& call : cuda.calls()) {
    if (call.thread != std::this_thread::get_id()) continue;
    EXPECT_THAT(call.name, testing::Not(HasSubstr("Synchronize")));
  }
}

// The pipe must submit a copy while the previous copy is still running.
TEST(DevicePipe, TwoCopiesAreOnTheirWay) {
  fake_cuda cuda;
  cuda.jitter(0us);
  cuda.delay(test::work_kind::copy, 300ms);
  test::pinned_source source(&fake_cuda::api(), batches_of(5, {}, {}), 3);
  const auto began = std::chrono::steady_clock::now();
  device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
  while (cuda.calls_of("kernel launch") < 2) std::this_thread::sleep_for(1ms);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 300ms);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(cuda.calls_of("kernel launch"), 2) << "more would need more memory of the source";
  EXPECT_EQ(source.most_held(), 2U);
}

// A trainer rarely takes a batch. When it does, the previous copy is already done. The pipe must
// notice this without a wait.
TEST(DevicePipe, WaitsForNoCopyThatIsDone) {
  fake_cuda cuda;
  cuda.jitter(0us);
  constexpr int batches = 40;
  test::pinned_source source(&fake_cuda::api(), batches_of(batches, {}, {}));
  const owned_stream stream = make_stream(fake_cuda::api());
  std::int64_t waits = 0;
  {
    device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
    for (const device_batch& batch : pipe.on(stream.get().value)) {
      EXPECT_TRUE(batch.on_device());
      std::this_thread::sleep_for(3ms);
    }
    waits = cuda.calls_of("cudaEventSynchronize");
  }
  EXPECT_LT(waits, batches / 2);
}

// The pipe's kernels take microseconds. They must not wait until the consumer's kernels are done.
TEST(DevicePipe, ItsStreamsHaveTheHighestPriority) {
  fake_cuda cuda;
  test::pinned_source source(&fake_cuda::api(), batches_of(1, {}, {}));
  const device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
  EXPECT_EQ(cuda.streams().size(), 2U) << "one for copies, one for kernels";
  for (const stream each : cuda.streams()) {
    EXPECT_EQ(cuda.priority_of(each), fake_cuda::highest_priority);
    EXPECT_EQ(cuda.flags_of(each), stream_non_blocking);
  }
}

// The runtime refuses to let the consumer's stream wait for a batch. next() must throw the error
// and must not serve any later batch.
TEST(DevicePipe, NothingFollowsABatchThatIsMissing) {
  fake_cuda cuda;
  test::pinned_source source(&fake_cuda::api(), batches_of(9, {}, {}));
  const owned_stream stream = make_stream(fake_cuda::api());
  const cuda::stream on = stream.get().value;
  device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {.look_ahead = 1},
                   source.source());
  EXPECT_EQ(pipe.next(on)->micro_batch(), 0);
  while (cuda.calls_of("kernel launch") < 3) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms);
  cuda.fail_calls_from("cudaStreamWaitEvent", 1, 999);  // the calls of the pipe's thread also fail
  EXPECT_THAT(message_of<cuda_error>([&] { (void)pipe.next(on); }),
              HasSubstr("cudaStreamWaitEvent"));
  EXPECT_FALSE(pipe.next(on).has_value());
}

/// The ranges and names that a profiler received.
struct profiler_log {
  std::mutex mutex;
  std::set<std::string> ranges;
  std::vector<std::string> names;
  std::int64_t open = 0;
};
profiler_log& told_to_profiler() {
  static profiler_log log;
  return log;
}
const profiler_marks fake_marks = {
    .begin_range =
        [](const char* text) {
          const std::scoped_lock lock(told_to_profiler().mutex);
          told_to_profiler().ranges.insert(text);
          ++told_to_profiler().open;
        },
    .end_range =
        [] {
          const std::scoped_lock lock(told_to_profiler().mutex);
          --told_to_profiler().open;
        },
    .name_stream =
        [](stream, const char* name) {
          const std::scoped_lock lock(told_to_profiler().mutex);
          told_to_profiler().names.emplace_back(name);
        },
    .name_thread =
        [](const char* name) {
          const std::scoped_lock lock(told_to_profiler().mutex);
          told_to_profiler().names.emplace_back(name);
        },
};

// If requested, a profiler gets two ranges for each batch: one while the pipe fills the batch, and
// one while the consumer requests it. The profiler also gets the names of the streams.
TEST(DevicePipe, ShowsItsWorkToAProfilerIfAsked) {
  static cuda_api api = fake_cuda::api();
  api.marks = &fake_marks;
  for (const bool asked : {false, true}) {
    fake_cuda cuda;
    test::pinned_source source(&api, batches_of(2, {}, {}));
    {
      device_pipe pipe(&api, source.batches()[0].layout, {.profile = asked}, source.source());
      for (const device_batch& batch : pipe.on(nullptr)) EXPECT_TRUE(batch.on_device());
    }
    const profiler_log& log = told_to_profiler();
    EXPECT_EQ(log.open, 0);
    if (!asked) {
      EXPECT_THAT(log.ranges, IsEmpty());
      EXPECT_THAT(log.names, IsEmpty());
      continue;
    }
    EXPECT_THAT(log.ranges,
                testing::IsSupersetOf({"millrace: fill batch 0", "millrace: fill batch 1",
                                       "millrace: next batch 0", "millrace: next batch 1"}));
    EXPECT_THAT(log.names,
                testing::ElementsAre("mr-device", "millrace copies", "millrace kernels"));
  }
  fake_cuda cuda;
  test::pinned_source source(&fake_cuda::api(), batches_of(1, {}, {}));
  EXPECT_EQ(message_of<config_error>([&] {
              const device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout,
                                     {.profile = true}, source.source());
            }),
            "profile is set, but this build has no NVTX: build millrace with a CUDA toolkit that "
            "has the header nvtx3/nvToolsExtCudaRt.h, or leave profile off");
}

// A slow consumer makes the pipe wait, which in turn makes the source wait.
TEST(DevicePipe, GoesAheadNoFurtherThanItWasAskedTo) {
  fake_cuda cuda;
  cuda.jitter(0us);
  test::pinned_source source(&fake_cuda::api(), batches_of(30, {}, {}));
  const owned_stream stream = make_stream(fake_cuda::api());
  device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {.look_ahead = 2},
                   source.source());
  const std::optional<device_batch> held = pipe.next(stream.get().value);
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(cuda.calls_of("kernel launch"), 4);
  EXPECT_EQ(pipe.report().batches, 4);
  EXPECT_LE(source.most_held(), 2U);
}

// A trainer on stage 0 of a pipeline of 8 stages holds 8 batches. The slots for them must not be
// used to prepare more batches in advance.
TEST(DevicePipe, HasSlotsForBatchesThatTheTrainerHolds) {
  fake_cuda cuda;
  test::pinned_source source(&fake_cuda::api(), batches_of(60, {}, {}));
  const owned_stream stream = make_stream(fake_cuda::api());
  const cuda::stream on = stream.get().value;
  test::checking_consumer consumer(cuda);
  {
    device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {.look_ahead = 2, .held = 8},
                     source.source());
    EXPECT_EQ(pipe.report().slots, 11U);
    std::deque<device_batch> held;
    std::int64_t taken = 0;
    while (auto batch = pipe.next(on)) {
      consumer.use(*batch, source.batches()[static_cast<std::size_t>(taken)], on);
      held.push_back(std::move(*batch));
      EXPECT_LE(pipe.report().batches, ++taken + 3);
      if (held.size() == 8) held.pop_front();
    }
    EXPECT_EQ(taken, 60);
  }
  drain(fake_cuda::api(), on);
  EXPECT_THAT(consumer.wrong(), IsEmpty());
}

// A trainer only submits work, so its host releases batches long before its stream is done with
// them. The kernel of a new batch must then wait for the oldest released batch, which was served
// `slots` batches before. Every slot is used equally often.
TEST(DevicePipe, UsesItsSlotsInTurn) {
  fake_cuda cuda;
  cuda.delay(test::work_kind::other, 2ms);
  constexpr std::size_t slots = 4;
  test::pinned_source source(&fake_cuda::api(), batches_of(40, {}, {}));
  const owned_stream stream = make_stream(fake_cuda::api());
  const cuda::stream on = stream.get().value;
  test::checking_consumer consumer(cuda);
  std::vector<const std::int64_t*> used;
  {
    device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {.look_ahead = slots - 2},
                     source.source());
    while (const auto batch = pipe.next(on)) {
      consumer.use(*batch, source.batches()[used.size()], on);
      used.push_back(batch->tokens());
    }
  }
  ASSERT_EQ(used.size(), 40U);
  EXPECT_EQ(std::set(used.begin(), used.begin() + slots).size(), slots);
  for (std::size_t n = slots; n < used.size(); ++n) EXPECT_EQ(used[n], used[n - slots]) << n;
  drain(fake_cuda::api(), on);
  EXPECT_THAT(consumer.wrong(), IsEmpty());
}

TEST(DevicePipe, AWholeRingHeldIsAnErrorAndNoHang) {
  fake_cuda cuda;
  test::pinned_source source(&fake_cuda::api(), batches_of(5, {}, {}));
  const owned_stream stream = make_stream(fake_cuda::api());
  const cuda::stream on = stream.get().value;
  device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {.look_ahead = 1},
                   source.source());
  std::vector<device_batch> held;
  held.reserve(3);
  for (int i = 0; i < 3; ++i) held.push_back(std::move(*pipe.next(on)));
  EXPECT_EQ(message_of<config_error>([&] { (void)pipe.next(on); }),
            "all 3 slots of the device ring are still held (held is 1, look_ahead is 1): destroy a "
            "batch, and the tensors made from it, before calling next(), or raise held");
  held.clear();
  EXPECT_EQ(pipe.next(on)->micro_batch(), 3);  // serving continues
}

// If the consumer holds all batches of a short run, next() must report the end of the run, not an
// error.
TEST(DevicePipe, AShortRunMayBeHeldAsAWhole) {
  fake_cuda cuda;
  test::pinned_source source(&fake_cuda::api(), batches_of(2, {}, {}));
  const owned_stream stream = make_stream(fake_cuda::api());
  device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
  std::vector<device_batch> held;
  while (auto batch = pipe.next(stream.get().value)) held.push_back(std::move(*batch));
  EXPECT_EQ(held.size(), 2U);
}

TEST(DevicePipe, WhatTheSourceThrowsArrivesOnceInItsPlace) {
  fake_cuda cuda;
  test::pinned_source source(&fake_cuda::api(), batches_of(5, {}, {}));
  source.fail_at(2);
  const owned_stream stream = make_stream(fake_cuda::api());
  const cuda::stream on = stream.get().value;
  device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
  EXPECT_EQ(pipe.next(on)->micro_batch(), 0);
  EXPECT_EQ(pipe.next(on)->micro_batch(), 1);
  EXPECT_EQ(message_of<std::runtime_error>([&] { (void)pipe.next(on); }), "the source failed");
  EXPECT_FALSE(pipe.next(on).has_value());
}

TEST(DevicePipe, RefusesABatchThatIsTooLargeForIt) {
  fake_cuda cuda;
  test::pinned_source source(&fake_cuda::api(), batches_of(1, {.rows = 4, .seq_len = 64}, {}));
  const slot_layout smaller(3, 64, true, token_width::u16);
  device_pipe pipe(&fake_cuda::api(), smaller, {}, source.source());
  EXPECT_EQ(message_of<config_error>([&] { (void)pipe.next(nullptr); }),
            "a micro-batch of 4 rows of 64 tokens arrived at a device pipe that was created for 3 "
            "rows of 64: create it for the largest batch");
}

TEST(DevicePipe, RefusesOptionsOutOfRange) {
  fake_cuda cuda;
  test::pinned_source source(&fake_cuda::api(), batches_of(1, {}, {}));
  const auto with = [&](const device_options& options) {
    return message_of<config_error>([&] {
      const device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, options,
                             source.source());
    });
  };
  EXPECT_EQ(with({.look_ahead = 0}), "look_ahead is 0, expected 1 to 1024");
  EXPECT_EQ(with({.held = 0}), "held is 0, expected 1 to 1024");
  EXPECT_EQ(with({.device = 1}),
            "device is 1, expected 0 to 0, the devices that this process sees");
}

// Creating and destroying the pipe must not change the current device of the calling thread.
TEST(DevicePipe, LeavesTheCallersDeviceAlone) {
  fake_cuda cuda(1, 4);
  test::pinned_source source(&fake_cuda::api(), batches_of(3, {}, {}));
  ASSERT_EQ(fake_cuda::api().use_device(2), 0);
  {
    device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {.device = 3}, source.source());
    EXPECT_EQ(pipe.next(nullptr)->device(), 3);
  }
  EXPECT_EQ(fake_cuda::current_device(), 2);
  (void)fake_cuda::api().use_device(0);
}

// The pipe must refuse cudaStreamPerThread, which is a different stream on each thread. If another
// thread released a batch, it would record the release on the wrong stream.
TEST(DevicePipe, RefusesTheStreamThatIsAnotherOnEachThread) {
  fake_cuda cuda;
  for (const cuda_api* api : {&fake_cuda::api(), static_cast<const cuda_api*>(nullptr)}) {
    test::pinned_source source(api, batches_of(3, {}, {}));
    device_pipe pipe(api, source.batches()[0].layout, {.no_device = no_device_rule::host},
                     source.source());
    // NOLINTNEXTLINE(performance-no-int-to-ptr): cudaStreamPerThread is this number
    const auto per_thread = reinterpret_cast<stream>(std::uintptr_t{2});
    EXPECT_EQ(message_of<config_error>([&] { (void)pipe.next(per_thread); }),
              "the consumer's stream is cudaStreamPerThread (handle 2), expected a stream that is "
              "the same on every thread, because batches may be destroyed on another thread: pass "
              "a stream of cudaStreamCreateWithFlags, or null for the default stream");
    EXPECT_EQ(pipe.next(nullptr)->micro_batch(), 0) << "it goes on";
  }
  EXPECT_THAT(cuda.faults(), IsEmpty());
}

// A rank must create no context on another device. This includes threads that release batches but
// never chose a device. For example, a Python thread may drop the last reference to a tensor.
TEST(DevicePipe, HasAContextOnItsDeviceAlone) {
  for (const bool chosen : {false, true}) {
    fake_cuda cuda(1, 4);
    if (chosen) {
      EXPECT_EQ(fake_cuda::api().use_device(3), 0);
    }
    {
      test::pinned_source source(nullptr, batches_of(6, {}, {}));
      device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {.device = 3},
                       source.source());
      std::optional<device_batch> first = pipe.next(nullptr);
      std::jthread([&] { first.reset(); }).join();
      for (const device_batch& batch : pipe.on(nullptr)) EXPECT_EQ(batch.device(), 3);
    }
    EXPECT_EQ(cuda.contexts(), std::set<int>{3});
    EXPECT_EQ(cuda.alive(), 0U);
    (void)fake_cuda::api().use_device(0);
  }
}

// Without a driver, a device or CUDA, the host makes the same batches if the options allow it. The
// report says why no device is used.
TEST(DevicePipe, MakesTheSameOnTheHostWhereThereIsNoDevice) {
  for (const int code : {-1, 35, 100}) {
    fake_cuda cuda;
    cuda.set_driver(0);
    if (code > 0) cuda.fail_call("cudaGetDeviceCount", 1, code);
    const cuda_api* api = code > 0 ? &fake_cuda::api() : nullptr;
    for (const batch_rules& rules : test::all_rules()) {
      if (code > 0) cuda.fail_call("cudaGetDeviceCount", 1, code);
      test::pinned_source source(nullptr, batches_of(6, {}, rules));
      device_pipe pipe(api, source.batches()[0].layout,
                       {.no_device = no_device_rule::host, .rules = rules}, source.source());
      std::size_t number = 0;
      for (const device_batch& batch : pipe.on(nullptr)) {
        EXPECT_FALSE(batch.on_device());
        const batch_work found = test::arrays_of(batch);
        EXPECT_EQ(
            test::difference(found, batch.cu_seqlens_used(), source.batches()[number++].expected),
            "");
      }
      EXPECT_EQ(number, 6U);
      const std::string said = pipe.report().text();
      EXPECT_EQ(said.find("batches are made on the host ("), 0U) << said;
      EXPECT_THAT(said, HasSubstr(code > 0 ? "(" + std::to_string(code) + ")"
                                           : "this build is without CUDA"));
      EXPECT_EQ(cuda.error_left(), 0);
    }
    EXPECT_EQ(cuda.calls_of("cudaMalloc"), 0);
  }
}

// If there is a device that cannot be used, the pipe must not fall back to the host. It must throw
// an error that says what to do.
TEST(DevicePipe, ADeviceThatCannotBeUsedIsAnError) {
  const auto said = [](const char* call, int code, int driver = 13000) {
    fake_cuda cuda;
    cuda.set_driver(driver);
    cuda.fail_call(call, 1, code);
    test::pinned_source source(nullptr, batches_of(1, {}, {}));
    std::string text = message_of<cuda_error>([&] {
      const device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout,
                             {.no_device = no_device_rule::host}, source.source());
    });
    EXPECT_EQ(cuda.alive(), 0U);
    EXPECT_EQ(cuda.error_left(), 0);
    return text;
  };
  EXPECT_THAT(said("cudaGetDeviceCount", 802), HasSubstr("cudaGetDeviceCount: fakeError (802)"));
  EXPECT_EQ(
      said("cudaGetDeviceCount", 35, 12040),
      "cudaGetDeviceCount: cudaErrorInsufficientDriver (35): the driver of this machine is for "
      "CUDA 12.4, and this program was built with CUDA 13.0: install driver 580 or newer, or "
      "build millrace with CUDA 12.8, which needs driver 525");
  EXPECT_EQ(
      said("cudaGetDeviceCount", 3),
      "cudaGetDeviceCount: fakeError (3): CUDA cannot be used in a process forked from one "
      "that uses it: start workers in new processes (in Python: multiprocessing's \"spawn\"). "
      "In other processes, the driver is broken");
  EXPECT_EQ(said("cudaGetDeviceCount", 804),
            "cudaGetDeviceCount: fakeError (804): CUDA's forward compatibility package does not "
            "support this GPU: install a newer driver, or remove the folder `compat` of CUDA from "
            "LD_LIBRARY_PATH");
  EXPECT_EQ(said("cudaFuncGetAttributes", 209),
            "cudaFuncGetAttributes: fakeError (209): device 0 has compute capability 7.0, and this "
            "program has kernels for 80 90 100: build millrace with "
            "-DMILLRACE_CUDA_ARCHITECTURES=70");
}

// Makes each call fail once, in turn. The error must name the call and reach the caller, or be
// ignored if no caller is left. Nothing may hang, leak or be wrong. No error may stay in the
// runtime, where other code would find it.
TEST(DevicePipe, EveryCallMayFail) {
  bool some_call_was_left = true;
  bool some_was_kept = false;
  std::int64_t told = 0;
  constexpr std::size_t kept_blocks = 2;  // the blocks of the slots and of the texts
  for (std::int64_t k = 1; some_call_was_left; ++k) {
    SCOPED_TRACE(testing::Message() << "call " << k);
    fake_cuda cuda(static_cast<std::uint64_t>(k));
    cuda.jitter(20us);
    test::pinned_source source(&fake_cuda::api(), batches_of(6, {.rows = 1, .seq_len = 20}, {}));
    owned_stream stream = make_stream(fake_cuda::api());
    const cuda::stream on = stream.get().value;
    test::checking_consumer consumer(cuda);
    const std::size_t alive = cuda.alive();
    const std::size_t before = cuda.calls().size();
    cuda.fail_call(k, 999);
    std::int64_t served = 0;
    try {
      device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {.look_ahead = 1},
                       source.source());
      while (auto batch = pipe.next(on)) {
        consumer.use(*batch, source.batches()[static_cast<std::size_t>(served++)], on);
      }
    } catch (const cuda_error& e) {
      EXPECT_EQ(e.code(), 999);
      EXPECT_EQ(e.name(), "fakeError");
      ++told;
    }
    std::string failed;
    const auto calls = cuda.calls();
    for (const auto& call : calls) {
      if (call.code != 0) failed = call.name;
    }
    some_call_was_left = !failed.empty();
    cuda.fail_call(0, 0);
    EXPECT_EQ(cuda.error_left(), 0);
    // If a call to destroy or free an object failed, the object may still exist. If a wait for the
    // users of some memory failed, this memory may still exist, too.
    if (!std::ranges::any_of(std::array{"Destroy", "Free", "Synchronize"}, [&](const char* name) {
          return failed.find(name) != std::string::npos;
        })) {
      // If the release of a batch failed, nobody knows when the consumer is done, so the memory
      // stays.
      EXPECT_THAT(cuda.alive(), testing::AnyOf(alive, alive + kept_blocks)) << failed;
      some_was_kept = some_was_kept || cuda.alive() != alive;
    }
    drain(fake_cuda::api(), on);
    EXPECT_THAT(cuda.faults(), IsEmpty()) << failed;
    EXPECT_THAT(consumer.wrong(), IsEmpty()) << failed;
    EXPECT_GE(calls.size(), before);
    EXPECT_TRUE(some_call_was_left || served == 6) << served;
  }
  EXPECT_GT(told, 30);
  EXPECT_TRUE(some_was_kept);
}

// All calls of one kind fail, from the k-th call on. These calls are either waits or queries
// whether a copy is done. The pipe then gives up while copies may still run. It must not free the
// memory that these copies read or write.
TEST(DevicePipe, EveryWaitFromOneOnMayFail) {
  for (const char* call : {"Synchronize", "Query"}) {
    for (std::int64_t k = 1; k <= 12; ++k) {
      SCOPED_TRACE(testing::Message() << call << " " << k);
      fake_cuda cuda(static_cast<std::uint64_t>(k));
      cuda.jitter(20us);
      cuda.delay(test::work_kind::copy, 2ms);
      test::pinned_source source(&fake_cuda::api(), batches_of(6, {.rows = 1, .seq_len = 20}, {}));
      const owned_stream stream = make_stream(fake_cuda::api());
      const cuda::stream on = stream.get().value;
      test::checking_consumer consumer(cuda);
      cuda.fail_calls_from(call, k, 999);
      std::int64_t served = 0;
      const std::string said = message_of<cuda_error>([&] {
        device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {.look_ahead = 1},
                         source.source());
        while (auto batch = pipe.next(on)) {
          consumer.use(*batch, source.batches()[static_cast<std::size_t>(served++)], on);
        }
      });
      // Every batch except the first makes at least one call of this kind. The calls for the last
      // batch and at the end of the pipe come after all batches were served. So at least four calls
      // come while batches are served.
      if (k <= 4 || said != "nothing was thrown") {
        EXPECT_THAT(said, HasSubstr(std::string(call) + ": fakeError (999)"));
      } else {
        EXPECT_EQ(served, 6);
      }
      cuda.fail_call(0, 0);
      drain(fake_cuda::api(), on);
      EXPECT_EQ(consumer.seen(), served);
      EXPECT_THAT(consumer.wrong(), IsEmpty());
      EXPECT_THAT(cuda.faults(), IsEmpty());
    }
  }
}

// Another stream is being captured into a graph, in CUDA's default mode. The pipe must start, serve
// and end as always, and the capture must stay valid.
TEST(DevicePipe, ServesWhileAGraphIsCaptured) {
  fake_cuda cuda;
  const owned_stream captured = make_stream(fake_cuda::api());
  const owned_stream stream = make_stream(fake_cuda::api());
  test::pinned_source source(&fake_cuda::api(), batches_of(50, {}, {}));
  test::checking_consumer consumer(cuda);
  ASSERT_EQ(cuda.begin_capture(captured.get().value), 0);
  std::size_t served = 0;
  {
    device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
    for (const device_batch& batch : pipe.on(stream.get().value)) {
      consumer.use(batch, source.batches()[served++], stream.get().value);
    }
  }
  EXPECT_EQ(served, 50U);
  EXPECT_EQ(cuda.end_capture(captured.get().value), 0);
  drain(fake_cuda::api(), stream.get().value);
  EXPECT_THAT(consumer.wrong(), IsEmpty());
  EXPECT_THAT(cuda.faults(), IsEmpty());
  int mode = fake_cuda::relaxed;
  ASSERT_EQ(fake_cuda::api().exchange_capture_mode(&mode), 0);
  EXPECT_EQ(mode, fake_cuda::global) << "the caller's mode is as it was";
  (void)fake_cuda::api().exchange_capture_mode(&mode);
}

TEST(DevicePipe, RefusesAStreamThatIsBeingCaptured) {
  fake_cuda cuda;
  const owned_stream stream = make_stream(fake_cuda::api());
  const cuda::stream on = stream.get().value;
  test::pinned_source source(&fake_cuda::api(), batches_of(3, {}, {}));
  device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
  ASSERT_EQ(cuda.begin_capture(on), 0);
  EXPECT_EQ(
      message_of<config_error>([&] { (void)pipe.next(on); }),
      "the consumer's stream is being captured into a CUDA graph, expected a stream that runs "
      "its operations: a graph would read the same batch at every launch. Call next_into() before "
      "each launch, outside of the capture: it writes the batch into arrays of the graph");
  EXPECT_EQ(cuda.end_capture(on), 0);
  EXPECT_EQ(pipe.next(on)->micro_batch(), 0) << "it goes on";
}

// A batch ends while its stream is being captured. The graph must have no operation of the pipe,
// and the slot must not be filled again. The next call of next() must say why.
TEST(DevicePipe, ABatchMayEndDuringACapture) {
  fake_cuda cuda;
  const owned_stream stream = make_stream(fake_cuda::api());
  const cuda::stream on = stream.get().value;
  test::pinned_source source(&fake_cuda::api(), batches_of(9, {}, {}));
  test::checking_consumer consumer(cuda);
  const std::size_t alive = cuda.alive();
  {
    device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
    std::optional<device_batch> batch = pipe.next(on);
    consumer.use(*batch, source.batches()[0], on);
    ASSERT_EQ(cuda.begin_capture(on), 0);
    batch.reset();
    EXPECT_EQ(cuda.end_capture(on), 0);
    EXPECT_EQ(pipe.report().captured, 1);
    EXPECT_THAT(pipe.report().text(),
                HasSubstr(", 1 destroyed during the capture of a CUDA graph"));
    EXPECT_EQ(
        message_of<error>([&] { (void)pipe.next(on); }),
        "a batch was destroyed while its stream was being captured into a CUDA graph, so its "
        "memory cannot be used again: destroy batches, and tensors made from them, before the "
        "capture begins or after it has ended");
    EXPECT_FALSE(pipe.next(on).has_value());
  }
  drain(fake_cuda::api(), on);
  EXPECT_EQ(cuda.alive(), alive + 2) << "the memory, which the graph may read";
  EXPECT_THAT(consumer.wrong(), IsEmpty());
  EXPECT_THAT(cuda.faults(), IsEmpty());
}

// A kernel or a copy breaks the device. From then on, every call returns the same error, and the
// pipe must end.
TEST(DevicePipe, ADeviceThatBreaksInTheMiddleEndsThePipe) {
  for (std::int64_t k = 1; k <= 8; ++k) {
    SCOPED_TRACE(testing::Message() << "work " << k);
    fake_cuda cuda;
    test::pinned_source source(&fake_cuda::api(), batches_of(40, {}, {}));
    const owned_stream stream = make_stream(fake_cuda::api());
    cuda.break_work(k, fake_cuda::launch_failure);
    const std::string said = message_of<cuda_error>([&] {
      device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
      while (auto batch = pipe.next(stream.get().value)) {
      }
    });
    EXPECT_THAT(said, HasSubstr("(719)"));
    EXPECT_THAT(cuda.faults(), IsEmpty());
  }
}

// The pipe may be destroyed at any time. Nothing may hang or leak.
TEST(DevicePipe, MayEndAtAnyTime) {
  std::mt19937_64 random(test::seed(8));
  for (int round = 0; round < 30; ++round) {
    fake_cuda cuda(random());
    test::pinned_source source(&fake_cuda::api(), batches_of(10, {}, {}));
    owned_stream stream = make_stream(fake_cuda::api());
    const std::size_t alive = cuda.alive();
    std::vector<device_batch> outlive;
    {
      device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {.look_ahead = 1},
                       source.source());
      for (auto n = random() % 4; n > 0; --n) {
        outlive.push_back(std::move(*pipe.next(stream.get().value)));
      }
      std::this_thread::sleep_for(std::chrono::microseconds(random() % 500));
    }
    // Releases some batches on another thread.
    std::jthread([&] { outlive.clear(); }).join();
    EXPECT_EQ(cuda.alive(), alive);
    EXPECT_THAT(cuda.faults(), IsEmpty());
  }
}

// When the pipe ends, it stops a source that is waiting for data.
TEST(DevicePipe, ItsEndStopsASourceThatWaits) {
  fake_cuda cuda;
  std::atomic<bool> stopped{false};
  batch_source source;
  source.next = [&]() -> std::optional<staged_batch> {
    stopped.wait(false);
    return std::nullopt;
  };
  source.stop = [&] {
    stopped = true;
    stopped.notify_all();
  };
  { device_pipe pipe(&fake_cuda::api(), slot_layout(1, 8, true, token_width::u16), {}, source); }
  EXPECT_TRUE(stopped);
}

TEST(DevicePipe, MakesOnlyWhatIsWanted) {
  fake_cuda cuda;
  test::pinned_source source(&fake_cuda::api(), batches_of(2, {}, {}));
  device_options options;
  options.fields = {.tokens = true,
                    .labels = false,
                    .position_ids = false,
                    .loss_mask = false,
                    .cu_seqlens = false};
  device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, options, source.source());
  const auto batch = pipe.next(nullptr);
  EXPECT_NE(batch->tokens(), nullptr);
  EXPECT_EQ(batch->labels(), nullptr);
  EXPECT_EQ(batch->position_ids(), nullptr);
  EXPECT_EQ(batch->loss_mask(), nullptr);
  EXPECT_EQ(batch->cu_seqlens(), nullptr);
}

}  // namespace
}  // namespace millrace::loader::cuda
