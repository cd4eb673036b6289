// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <millrace/loader/cuda/detail/device_pipe.hpp>
#include <millrace/loader/detail/batch/slot_ring.hpp>

#include "support/fake_cuda/fake_cuda.hpp"
#include "support/fake_cuda/pinned_source.hpp"

// Measures how long the consumer's stream idles because of the pipe. Uses virtual time, so that the
// results do not depend on this machine.

namespace millrace::loader::cuda {
namespace {

using namespace std::chrono_literals;
using test::fake_cuda;
using test::virtual_time;
using test::work_kind;
using test::work_time;
using testing::IsEmpty;

constexpr std::int64_t served_batches = 64;
constexpr std::int64_t ring_slots = 4;
constexpr std::int64_t first_counted = 8;  // the pipe fills up during the batches before this one

constexpr test::device_costs model_costs = {.call = 0ns, .copy = 20us, .kernel = 7us, .wait = 3us};

std::vector<test::random_batch> small_batches() {
  std::mt19937_64 random(1);
  std::vector<test::random_batch> result;
  for (std::int64_t i = 0; i < served_batches; ++i) {
    result.push_back(test::make_random_batch(random, {.rows = 1, .seq_len = 16}, {}));
  }
  return result;
}

/// A consumer that submits one step per batch. Each step lasts `lasts`.
/// @param every  number of steps after which the consumer waits for its stream; 0: it never waits
struct trainer {
  fake_cuda* cuda;
  stream on;
  virtual_time lasts;
  std::int64_t every;
  std::int64_t steps = 0;

  void step() {
    cuda->put(
        on, {}, [] {}, lasts);
    ++steps;
  }
  bool is_to_wait() const { return every > 0 && steps % every == 0; }
  void wait_if_due() const {
    if (is_to_wait()) drain(fake_cuda::api(), on);
  }
};

/// Returns how long the stream idled between the first and the last counted step. Subtracts the
/// idle time that the stream would have if all batches were already on the device.
virtual_time exposed(fake_cuda& cuda, const trainer& served) {
  const auto span = [&](stream on) {
    const std::vector<work_time> steps = cuda.times_of(on);
    return steps.back().end - steps[first_counted].begin;
  };
  const owned_stream stream = make_stream(fake_cuda::api());
  trainer resident{&cuda, stream.get().value, served.lasts, served.every};
  while (resident.steps < served.steps) {
    resident.step();
    resident.wait_if_due();
  }
  return span(served.on) - span(resident.on);
}

void serve(fake_cuda& cuda, trainer& consumer) {
  test::pinned_source source(&fake_cuda::api(), small_batches());
  {
    device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {.look_ahead = ring_slots - 2},
                     source.source());
    while (std::optional<device_batch> batch = pipe.next(consumer.on)) {
      consumer.step();
      batch.reset();
      consumer.wait_if_due();
    }
  }
  EXPECT_EQ(consumer.steps, served_batches);
  EXPECT_THAT(cuda.faults(), IsEmpty());
}

/// Simulates the pipe, but reuses slots in the order that `reuse` names. When the consumer's host
/// waits for a batch, the simulation fills one slot. When the host waits for its stream, the
/// simulation fills all free slots.
void serve_by_model(fake_cuda& cuda, trainer& consumer, slot_reuse reuse, unsigned flags) {
  struct slot {
    owned_event ready = make_event(fake_cuda::api());
    owned_event released = make_event(fake_cuda::api());
  };
  const cuda_api& api = fake_cuda::api();
  stream made = nullptr;
  ASSERT_EQ(api.create_stream(&made, flags, 0), 0);
  const owned_stream pipe({&api, made});
  slot_ring<slot> ring(
      ring_slots, [](std::size_t) { return slot(); }, reuse);
  std::int64_t filled = 0;
  const auto fill = [&] {
    const auto claim = ring.acquire_free();
    cuda.put(
        made, {}, [] {}, model_costs.copy);
    wait(api, made, claim.slot->released.get().value);
    cuda.put(
        made, {}, [] {}, model_costs.kernel);
    record(api, claim.slot->ready.get().value, made);
    ring.publish(claim);
    ++filled;
  };
  while (filled < ring_slots) fill();
  while (consumer.steps < served_batches) {
    if (filled == consumer.steps) fill();
    slot* const taken = ring.take();
    wait(api, consumer.on, taken->ready.get().value);
    consumer.step();
    record(api, taken->released.get().value, consumer.on);
    ring.release(taken);
    if (!consumer.is_to_wait()) continue;
    while (filled < consumer.steps + ring_slots) fill();
    consumer.wait_if_due();
  }
  drain(api, made);
}

/// The number of steps after which the consumer waits for its stream, and the duration of a step.
struct pace {
  std::int64_t every;
  virtual_time lasts;
};

class DeviceTime : public testing::TestWithParam<pace> {
 protected:
  DeviceTime() { cuda_.set_costs(model_costs); }

  trainer consumer() { return {&cuda_, stream_.get().value, GetParam().lasts, GetParam().every}; }

  fake_cuda cuda_;
  owned_stream stream_ = make_stream(fake_cuda::api());
};

// The consumer's stream lags behind its host, so the slots of its last batches are still busy. The
// pipe uses the slot that has been free for the longest time. So its kernels run long before their
// results are needed, and the consumer's stream never idles.
TEST_P(DeviceTime, TheConsumersStreamNeverIdles) {
  trainer served = consumer();
  serve(cuda_, served);
  const std::vector<work_time> steps = cuda_.times_of(served.on);
  const std::vector<work_time> kernels = cuda_.times_of(work_kind::kernel);
  ASSERT_EQ(steps.size(), served_batches);
  ASSERT_EQ(kernels.size(), served_batches);
  if (!cuda_.has_one_queue()) {
    EXPECT_EQ(exposed(cuda_, served), 0ns);
    for (std::size_t n = first_counted; n < served_batches; ++n) {
      EXPECT_LE(kernels[n].end, steps[n - 1].begin) << n;
    }
  } else {
    // With a single hardware queue, work waits behind a kernel that waits for the consumer.
    EXPECT_LE(exposed(cuda_, served),
              (served_batches - first_counted) * (model_costs.kernel + 2 * model_costs.wait));
  }
}

// The consumer's stream never idles even if it is the default stream, because the pipe's streams do
// not wait for the default stream.
TEST_P(DeviceTime, TheDefaultStreamNeverIdles) {
  trainer served = consumer();
  served.on = nullptr;
  serve(cuda_, served);
  if (!cuda_.has_one_queue()) {
    EXPECT_EQ(exposed(cuda_, served), 0ns);
  }
}

// Shows that the two tests above can fail: with another order of slots, or another kind of stream,
// the consumer's stream idles.
TEST_P(DeviceTime, OtherOrdersAndStreamsWouldIdle) {
  const auto time_of = [&](slot_reuse reuse, unsigned flags, bool by_default) {
    const owned_stream stream = make_stream(fake_cuda::api());
    trainer served = consumer();
    served.on = by_default ? nullptr : stream.get().value;
    serve_by_model(cuda_, served, reuse, flags);
    return exposed(cuda_, served) / (served_batches - first_counted);
  };
  EXPECT_EQ(time_of(slot_reuse::oldest, stream_non_blocking, false), 0ns);
  const virtual_time kernel_and_waits = model_costs.kernel + 2 * model_costs.wait;
  const virtual_time newest = time_of(slot_reuse::newest, stream_non_blocking, false);
  if (GetParam().every == 0) {
    EXPECT_GE(newest, kernel_and_waits - 1us);
  } else if (GetParam().every > 1) {
    EXPECT_GE(newest, kernel_and_waits / 2);
  } else {
    EXPECT_EQ(newest, 0ns) << "every slot is free whenever this consumer goes on";
  }
  EXPECT_GT(time_of(slot_reuse::oldest, 0, true), model_costs.kernel);
}

INSTANTIATE_TEST_SUITE_P(Paces, DeviceTime,
                         testing::Values(pace{0, 5ms}, pace{0, 1ms}, pace{0, 300us}, pace{8, 5ms},
                                         pace{8, 300us}, pace{1, 5ms}, pace{1, 300us}),
                         [](const testing::TestParamInfo<pace>& one) {
                           const std::string lasts = std::to_string(one.param.lasts / 1us) + "us";
                           if (one.param.every == 0) return "NeverWaits_" + lasts;
                           return "WaitsEvery" + std::to_string(one.param.every) + "_" + lasts;
                         });

}  // namespace
}  // namespace millrace::loader::cuda
