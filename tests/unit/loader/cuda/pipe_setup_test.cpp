// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <millrace/loader/cuda/detail/device_pipe.hpp>
#include <millrace/loader/cuda/detail/pinned_hook.hpp>

#include "support/child_process.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/fake_cuda/pinned_source.hpp"

// Tests what a pipe creates in the runtime, and which error it reports if that fails.

namespace millrace::loader::cuda {
namespace {

using namespace std::chrono_literals;
using test::fake_cuda;
using testing::AnyOf;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::vector<test::random_batch> setup_batches(std::size_t count) {
  std::mt19937_64 random(2);
  std::vector<test::random_batch> result;
  for (std::size_t i = 0; i < count; ++i) {
    result.push_back(test::make_random_batch(random, {.rows = 1, .seq_len = 16}, {}));
  }
  return result;
}

/// Returns the error of a pipe that cannot be created.
std::string refusal(fake_cuda& cuda) {
  test::pinned_source source(nullptr, setup_batches(1));
  std::string said = "nothing was thrown";
  try {
    const device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout,
                           {.no_device = no_device_rule::host}, source.source());
  } catch (const error& e) {
    said = e.what();
  }
  EXPECT_EQ(cuda.error_left(), 0);
  EXPECT_EQ(cuda.alive(), 0U);
  return said;
}

// A stream that synchronizes with the default stream would wait for the trainer. The kernels
// of a stream of normal priority would wait until the trainer's kernels are done. Events with
// timing are slower. An event with blocking sync delays the stream on which it is recorded, so the
// trainer's stream must not get one. The fake runtime reports a host thread that waits for an event
// without blocking sync.
TEST(PipeSetup, StreamsAndEventsHaveTheRightFlags) {
  fake_cuda cuda;
  test::pinned_source source(nullptr, setup_batches(4));
  const owned_stream trainer = make_stream(fake_cuda::api());
  std::vector<stream> made;
  {
    device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
    made = cuda.streams();
    while (pipe.next(trainer.get().value)) {
    }
    EXPECT_EQ(cuda.streams(), made) << "a pipe creates its streams once";
  }
  std::erase(made, trainer.get().value);
  ASSERT_THAT(made, Not(IsEmpty()));
  for (const stream each : made) {
    EXPECT_EQ(cuda.flags_of(each), stream_non_blocking);
    EXPECT_EQ(cuda.priority_of(each), fake_cuda::highest_priority);
  }
  EXPECT_THAT(cuda.event_flags(), Not(IsEmpty()));
  EXPECT_THAT(cuda.event_flags(),
              Each(AnyOf(event_disable_timing, event_disable_timing | event_blocking_sync)));
  EXPECT_EQ(cuda.flags_recorded_on(trainer.get().value), event_disable_timing);
  EXPECT_THAT(cuda.faults(), IsEmpty());
}

// Without the portable flag, page-locked memory counts as pageable in all contexts except the one
// that allocated it.
TEST(PipeSetup, PageLockedMemoryIsPortable) {
  const fake_cuda cuda;
  const pinned_memory_hook hook = pinned_hook(&fake_cuda::api(), 0);
  std::string why;
  void* memory = hook.allocate(hook.context, 100, why);
  ASSERT_NE(memory, nullptr) << why;
  hook.release(hook.context, memory);
  EXPECT_THAT(cuda.pinned_flags(), ElementsAre(host_portable));
}

// Loading a kernel can wait for all work on the device, so the pipe loads its kernels before its
// first batch.
TEST(PipeSetup, KernelsAreLoadedBeforeTheFirstBatch) {
  fake_cuda cuda;
  for (int i = 0; i < 2; ++i) {
    test::pinned_source source(nullptr, setup_batches(4));
    device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
    while (pipe.next(nullptr)) {
    }
  }
  EXPECT_THAT(cuda.loads(), ElementsAre("cudaFuncGetAttributes"));
}

TEST(PipeSetup, ADeviceWithoutKernelsIsAnError) {
  fake_cuda cuda;
  cuda.refuse_kernels(fake_cuda::no_kernel_image);
  EXPECT_THAT(refusal(cuda), HasSubstr("this program has kernels for 80 90 100"));
}

TEST(PipeSetup, ADriverThatIsTooOldIsAnError) {
  fake_cuda cuda;
  cuda.set_driver(12040);
  EXPECT_THAT(refusal(cuda), HasSubstr("the driver of this machine is for CUDA 12.4"));
}

TEST(PipeSetup, NoDriverAndNoDeviceAreNone) {
  {
    fake_cuda cuda;
    cuda.set_driver(0);
    EXPECT_EQ(refusal(cuda), "nothing was thrown");
  }
  fake_cuda cuda(1, 0);
  EXPECT_EQ(refusal(cuda), "nothing was thrown");
}

TEST(PipeSetup, AForkedChildCannotUseTheDevice) {
  const fake_cuda cuda;
  EXPECT_EQ(test::in_child([] {
              try {
                (void)find_device(&fake_cuda::api(), 0);
              } catch (const cuda_error& e) {
                return std::string(e.what()).find("forked") != std::string::npos ? 0 : 2;
              }
              return 1;
            }),
            0);
}

// A pipe that is a static object can end after the runtime. Its destructor must not throw or hang,
// and it must not free memory that the device might still use.
TEST(PipeSetup, MayEndAfterTheRuntime) {
  fake_cuda cuda;
  cuda.delay(test::work_kind::copy, 2ms);
  test::pinned_source source(&fake_cuda::api(), setup_batches(8));
  std::optional<device_pipe> pipe(std::in_place, &fake_cuda::api(), source.batches()[0].layout,
                                  device_options{}, source.source());
  std::optional<device_batch> batch = pipe->next(nullptr);
  cuda.unload();
  batch.reset();
  pipe.reset();
  EXPECT_THAT(cuda.faults(), IsEmpty());
}

}  // namespace
}  // namespace millrace::loader::cuda
