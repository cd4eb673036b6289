// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/detail/device_pipe.hpp>

#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/fake_cuda/pinned_source.hpp"

// Each wait and each event record of the pipe has a test in this file. The test fails if the wait
// or the record is missing. removed_waits.py removes them one by one to check this. The delays are
// so long that late work cannot finish in time by chance.

namespace millrace::loader::cuda {
namespace {

using namespace std::chrono_literals;
using test::fake_cuda;
using testing::IsEmpty;

const batch_rules rules = {.eod = 7, .positions = position_rule::after_eod};

std::vector<test::random_batch> ordered_batches(std::size_t count) {
  std::mt19937_64 random(3);
  std::vector<test::random_batch> result;
  for (std::size_t i = 0; i < count; ++i) {
    result.push_back(test::make_random_batch(random, {.rows = 2, .seq_len = 64}, rules));
  }
  return result;
}

class PipeOrder : public testing::Test {
 protected:
  /// Serves all batches to a consumer that uses each batch and then releases it at once.
  void serve_all() {
    {
      device_pipe pipe(&fake_cuda::api(), source_.batches()[0].layout, {.rules = rules},
                       source_.source());
      for (std::size_t i = 0; i < source_.batches().size(); ++i) {
        std::optional<device_batch> batch = pipe.next(stream_.get().value);
        ASSERT_TRUE(batch.has_value());
        consumer_.use(*batch, source_.batches()[i], stream_.get().value);
      }
      EXPECT_FALSE(pipe.next(stream_.get().value).has_value());
    }
    finish();
  }

  void finish() {
    drain(fake_cuda::api(), stream_.get().value);
    EXPECT_EQ(consumer_.seen(), static_cast<std::int64_t>(source_.batches().size()));
    EXPECT_THAT(consumer_.wrong(), IsEmpty());
    EXPECT_THAT(cuda_.faults(), IsEmpty());
    EXPECT_EQ(cuda_.error_left(), 0);
  }

  fake_cuda cuda_{11};
  test::pinned_source source_{&fake_cuda::api(), ordered_batches(12)};
  owned_stream stream_ = make_stream(fake_cuda::api());
  test::checking_consumer consumer_{cuda_};
};

// Without the record of `copied`, or without the wait for it, the host slot is refilled too early.
TEST_F(PipeOrder, ASlotOfTheHostIsLeftAloneUntilItWasCopied) {
  cuda_.delay(test::work_kind::copy, 3ms);
  serve_all();
}

// The pipe must query whether `copied` is done, and must wait for `copied` at the end. Without the
// query or the wait, a host slot is refilled too early if the consumer is slow.
TEST_F(PipeOrder, NoSlotOfTheHostIsThoughtToBeCopied) {
  cuda_.delay(test::work_kind::copy, 10ms);
  {
    device_pipe pipe(&fake_cuda::api(), source_.batches()[0].layout, {.rules = rules},
                     source_.source());
    for (const test::random_batch& wanted : source_.batches()) {
      std::optional<device_batch> batch = pipe.next(stream_.get().value);
      consumer_.use(*batch, wanted, stream_.get().value);
      std::this_thread::sleep_for(2ms);
    }
  }
  finish();
}

// Without the record of `ready`, or without the consumer's wait for it, the consumer uses
// unfinished arrays.
TEST_F(PipeOrder, AConsumerFindsWhatTheKernelMade) {
  cuda_.delay(test::work_kind::kernel, 3ms);
  serve_all();
}

// Without the record of `released`, or without the pipe's wait for it, arrays are overwritten while
// a slow consumer still uses them.
TEST_F(PipeOrder, ASlotOfTheDeviceIsLeftAloneUntilItsConsumerHasDone) {
  cuda_.delay(test::work_kind::other, 3ms);
  serve_all();
}

// Without the wait until a copy may begin, the pipe would attribute each stall that a slow consumer
// causes to a slow copy. The first copies are late in any case, and a busy machine can delay other
// copies. So one attempt in which most stalls are attributed to the consumer is enough.
TEST_F(PipeOrder, AConsumerThatIsLateIsToldFromACopyThatIs) {
  const auto is_told = [this] {
    test::pinned_source source(&fake_cuda::api(), ordered_batches(24));
    device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {.rules = rules},
                     source.source());
    for (int i = 0; i < 24; ++i) {
      const auto batch = pipe.next(stream_.get().value);
      cuda_.put(stream_.get().value, {}, [] { std::this_thread::sleep_for(10ms); });
    }
    const telemetry_report report = pipe.meter()->report();
    const auto stalls_by = [&](stall_cause cause) {
      return report.stalls[static_cast<std::size_t>(cause)].stalls;
    };
    drain(fake_cuda::api(), stream_.get().value);
    return stalls_by(stall_cause::consumer) >= 8 &&
           stalls_by(stall_cause::consumer) > 2 * stalls_by(stall_cause::copy);
  };
  bool told = false;
  for (int run = 0; run < 20 && !told; ++run) told = is_told();
  EXPECT_TRUE(told);
}

// Without the wait for the pipe's own streams, memory is freed while copies and kernels still use
// it. This work still runs, although its results are not needed.
TEST_F(PipeOrder, MemoryEndsBehindTheLastKernel) {
  cuda_.delay(test::work_kind::kernel, 5ms);
  {
    device_pipe pipe(&fake_cuda::api(), source_.batches()[0].layout, {.rules = rules},
                     source_.source());
    while (cuda_.calls_of("kernel launch") == 0) std::this_thread::sleep_for(100us);
  }
  EXPECT_THAT(cuda_.faults(), IsEmpty());
}

// Without the wait for `released`, memory is freed while a slow consumer still uses it.
TEST_F(PipeOrder, MemoryEndsBehindTheLastConsumer) {
  cuda_.delay(test::work_kind::other, 5ms);
  serve_all();
}

// Without the wait for `released`, memory is freed while a slow consumer still uses it. Here, the
// last batch is released after the pipe is destroyed.
TEST_F(PipeOrder, MemoryEndsBehindABatchThatOutlivesThePipe) {
  cuda_.delay(test::work_kind::other, 5ms);
  std::optional<device_batch> batch;
  {
    device_pipe pipe(&fake_cuda::api(), source_.batches()[0].layout, {.rules = rules},
                     source_.source());
    batch = pipe.next(stream_.get().value);
  }
  consumer_.use(*batch, source_.batches()[0], stream_.get().value);
  batch.reset();
  drain(fake_cuda::api(), stream_.get().value);
  EXPECT_THAT(consumer_.wrong(), IsEmpty());
  EXPECT_THAT(cuda_.faults(), IsEmpty());
}

// Without the record of `released` on another stream, or without the pipe's wait for it, arrays are
// overwritten while that stream still uses them.
TEST_F(PipeOrder, ASlotIsLeftAloneUntilAnotherStreamHasDone) {
  const owned_stream other = make_stream(fake_cuda::api());
  const cuda::stream late = other.get().value;
  cuda_.delay(test::work_kind::other, 20ms);
  {
    device_pipe pipe(&fake_cuda::api(), source_.batches()[0].layout, {.rules = rules},
                     source_.source());
    for (const test::random_batch& wanted : source_.batches()) {
      std::optional<device_batch> batch = pipe.next(stream_.get().value);
      batch->wait_on(late);
      batch->also_used_on(late);
      consumer_.use(*batch, wanted, late);
    }
  }
  drain(fake_cuda::api(), late);
  finish();
}

// Without the wait for `released` of another stream, memory is freed while that stream still uses
// it.
TEST_F(PipeOrder, MemoryEndsBehindAnotherStream) {
  const owned_stream other = make_stream(fake_cuda::api());
  const cuda::stream late = other.get().value;
  cuda_.delay(test::work_kind::other, 20ms);
  {
    device_pipe pipe(&fake_cuda::api(), source_.batches()[0].layout, {.rules = rules},
                     source_.source());
    std::optional<device_batch> batch = pipe.next(stream_.get().value);
    batch->wait_on(late);
    batch->also_used_on(late);
    consumer_.use(*batch, source_.batches()[0], late);
  }
  drain(fake_cuda::api(), late);
  EXPECT_THAT(consumer_.wrong(), IsEmpty());
  EXPECT_THAT(cuda_.faults(), IsEmpty());
}

// The release of a batch could not be recorded. Nobody knows when the consumer is done, so the
// memory must not be freed.
TEST_F(PipeOrder, AFailedReleaseLeavesNoConsumerBehind) {
  cuda_.delay(test::work_kind::other, 5ms);
  const std::size_t alive = cuda_.alive();
  {
    device_pipe pipe(&fake_cuda::api(), source_.batches()[0].layout, {.rules = rules},
                     source_.source());
    std::optional<device_batch> batch = pipe.next(stream_.get().value);
    std::this_thread::sleep_for(20ms);  // by then, the pipe has recorded all its events
    consumer_.use(*batch, source_.batches()[0], stream_.get().value);
    cuda_.fail_call("cudaEventRecord", 1, 999);
    batch.reset();
    EXPECT_THROW((void)pipe.next(stream_.get().value), cuda_error);
    EXPECT_FALSE(pipe.next(stream_.get().value).has_value());
  }
  EXPECT_EQ(cuda_.alive(), alive + 2) << "the memory of the slots, and of the texts";
  drain(fake_cuda::api(), stream_.get().value);
  EXPECT_THAT(consumer_.wrong(), IsEmpty());
  EXPECT_THAT(cuda_.faults(), IsEmpty());
}

// A null stream means the default stream of the pipe's device. This holds on any thread that takes
// or releases a batch, even if another device is current there.
TEST(PipeOrderOfDevices, TheDefaultStreamIsThatOfThePipesDevice) {
  fake_cuda cuda(5, 2);
  cuda.delay(test::work_kind::other, 3ms);
  test::pinned_source source(&fake_cuda::api(), ordered_batches(12));
  test::checking_consumer consumer(cuda);
  {
    device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {.device = 1, .rules = rules},
                     source.source());
    for (const test::random_batch& wanted : source.batches()) {
      std::optional<device_batch> batch = pipe.next(nullptr);  // called while device 0 is current
      ASSERT_TRUE(batch.has_value());
      {
        const device_scope scope(fake_cuda::api(), 1);
        consumer.use(*batch, wanted, nullptr);
      }
      std::jthread([&] { batch.reset(); }).join();  // on a thread that chose no device
    }
  }
  {
    const device_scope scope(fake_cuda::api(), 1);
    drain(fake_cuda::api(), nullptr);
  }
  EXPECT_EQ(consumer.seen(), 12);
  EXPECT_THAT(consumer.wrong(), IsEmpty());
  EXPECT_THAT(cuda.faults(), IsEmpty());
}

// Without the wait after a failure, the host slot is freed while a copy still reads it.
TEST_F(PipeOrder, AFailedLaunchLeavesNoCopyBehind) {
  cuda_.delay(test::work_kind::copy, 5ms);
  cuda_.fail_call("kernel launch", 1, fake_cuda::launch_failure);
  const test::random_batch& batch = source_.batches()[0];
  // `hold` is the only owner of the slot's memory, so the memory is freed as soon as the pipe drops
  // it.
  const auto next = [&]() -> std::optional<staged_batch> {
    auto memory = std::make_shared<pinned_block>(
        allocate_pinned(fake_cuda::api(), batch.layout.capacity_bytes()));
    auto* slot = static_cast<std::byte*>(memory->get().value);
    std::memcpy(slot, batch.slot.data(), batch.slot.size());
    staged_batch staged{.slot = slot, .layout = batch.layout};
    staged.boundaries = batch.boundaries;
    staged.hold = memory;
    return staged;
  };
  device_pipe pipe(&fake_cuda::api(), batch.layout, {.rules = rules}, {.next = next});
  EXPECT_THROW((void)pipe.next(stream_.get().value), cuda_error);
  EXPECT_THAT(cuda_.faults(), IsEmpty());
}

}  // namespace
}  // namespace millrace::loader::cuda
