// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/cuda/detail/cuda_api.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>

#include <millrace/loader/cuda/detail/find_device.hpp>
#include <millrace/loader/cuda/detail/handles.hpp>
#include <millrace/loader/cuda/detail/pinned_hook.hpp>
#include <millrace/loader/detail/memory/pinned_pool.hpp>

#include "support/fake_cuda/fake_cuda.hpp"

namespace millrace::loader::cuda {
namespace {

using test::fake_cuda;
using testing::HasSubstr;

// Tests the real runtime on any machine. The runtime is linked statically, so a program starts even
// without a driver and then gets error 35.
TEST(RuntimeApi, AnswersOnEveryMachine) {
  const cuda_api* api = runtime_api();
  const device_answer answer = find_device(api, 0);
  if (api == nullptr) {
    EXPECT_STREQ(runtime_version(), "without CUDA");
    EXPECT_EQ(answer.why, "this build is without CUDA");
    return;
  }
  EXPECT_THAT(runtime_version(), testing::StartsWith("CUDA 1"));
  if (api->marks != nullptr) {  // does nothing without a profiler
    api->marks->name_thread("test");
    api->marks->begin_range("range");
    api->marks->end_range();
  }
  if (answer.usable) return;  // tests/gpu covers machines with a device
  EXPECT_THAT(answer.code, testing::AnyOf(0, 35, 100));
  if (answer.code == 35) {
    EXPECT_THAT(answer.why, HasSubstr("cudaErrorInsufficientDriver (35)"));
  }
  try {
    (void)make_stream(*api);
    ADD_FAILURE() << "a stream without a device";
  } catch (const cuda_error& e) {
    EXPECT_STREQ(e.call(), "cudaStreamCreateWithPriority");
  }
  batch_work work;
  work.rows = 1;
  work.seq_len = 1;
  EXPECT_NE(api->launch_batch(work, nullptr), 0);
}

TEST(CudaError, SaysTheCallTheCodeAndItsName) {
  fake_cuda cuda;
  cuda.fail_call("cudaMalloc", 1, fake_cuda::out_of_memory);
  try {
    (void)allocate_device(fake_cuda::api(), 10);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const cuda_error& e) {
    EXPECT_STREQ(e.what(), "cudaMalloc: fakeError (2): injected by a test");
    EXPECT_STREQ(e.call(), "cudaMalloc");
    EXPECT_EQ(e.code(), 2);
    EXPECT_EQ(e.name(), "fakeError");
  }
  EXPECT_EQ(cuda.error_left(), 0);
}

TEST(PinnedHook, GivesThePoolMemoryOfTheRuntime) {
  fake_cuda cuda;
  const std::size_t alive = cuda.alive();
  {
    pool_options options;
    options.slots = 2;
    options.slot_bytes = 1000;
    options.cuda = pinned_hook(&fake_cuda::api(), 0);
    const pinned_pool pool(options);
    EXPECT_EQ(pool.kind(), memory_kind::cuda);
    EXPECT_EQ(cuda.alive(), alive + 1);

    cuda.fail_call("cudaHostAlloc", 1, fake_cuda::out_of_memory);
    const pinned_pool without(options);
    EXPECT_NE(without.kind(), memory_kind::cuda);
    EXPECT_THAT(without.report().text(),
                HasSubstr("cudaHostAlloc: fakeError (2): injected by a test"));
    EXPECT_EQ(cuda.error_left(), 0);
  }
  EXPECT_EQ(cuda.alive(), alive);
  EXPECT_TRUE(cuda.faults().empty());
  EXPECT_FALSE(pinned_hook(nullptr, 0));
}

// Each rank of a machine uses its own device and must create no context on another one. This
// includes threads that allocate or free memory but never chose a device.
TEST(PinnedHook, MakesNoContextOnAnotherDevice) {
  fake_cuda cuda(1, 3);
  const pinned_memory_hook hook = pinned_hook(&fake_cuda::api(), 2);
  EXPECT_EQ(hook, pinned_hook(&fake_cuda::api(), 2));
  EXPECT_NE(hook, pinned_hook(&fake_cuda::api(), 1));
  std::string why;
  void* memory = hook.allocate(hook.context, 100, why);
  ASSERT_NE(memory, nullptr) << why;
  hook.release(hook.context, memory);
  EXPECT_EQ(cuda.contexts(), std::set<int>{2});
  EXPECT_EQ(cuda.alive(), 0U);

  // The previous device must be current again, even after a failed call.
  cuda.fail_call("cudaHostAlloc", 1, fake_cuda::out_of_memory);
  EXPECT_EQ(hook.allocate(hook.context, 100, why), nullptr);
  EXPECT_THAT(why, HasSubstr("cudaHostAlloc: fakeError (2)"));
  memory = hook.allocate(hook.context, 100, why);
  cuda.fail_call("cuCtxPushCurrent", 1, 999);
  hook.release(hook.context, memory);
  EXPECT_EQ(cuda.alive(), 0U) << "freed, on whatever device";
  EXPECT_EQ(fake_cuda::current_device(), 0);
  EXPECT_EQ(cuda.error_left(), 0);
}

}  // namespace
}  // namespace millrace::loader::cuda
