// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/cuda/cuda_api.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <millrace/loader/cuda/find_device.hpp>
#include <millrace/loader/cuda/handles.hpp>
#include <millrace/loader/cuda/pinned_hook.hpp>
#include <millrace/loader/memory/pinned_pool.hpp>

#include "support/fake_cuda/fake_cuda.hpp"

namespace millrace::loader::cuda {
namespace {

using test::fake_cuda;
using testing::HasSubstr;

// The true runtime, whatever machine this is: linked statically, so that a program starts without a
// driver and is told 35.
TEST(RuntimeApi, AnswersOnEveryMachine) {
  const cuda_api* api = runtime_api();
  const device_answer answer = find_device(api, 0);
  if (api == nullptr) {
    EXPECT_STREQ(runtime_version(), "without CUDA");
    EXPECT_EQ(answer.why, "this build is without CUDA");
    return;
  }
  EXPECT_THAT(runtime_version(), testing::StartsWith("CUDA 1"));
  if (answer.usable) return;  // tests/gpu has the rest
  EXPECT_THAT(answer.code, testing::AnyOf(0, 3, 35, 100, 804));
  if (answer.code == 35) {
    EXPECT_THAT(answer.why, HasSubstr("cudaErrorInsufficientDriver (35)"));
  }
  try {
    (void)make_stream(*api);
    ADD_FAILURE() << "a stream without a device";
  } catch (const cuda_error& e) {
    EXPECT_STREQ(e.call(), "cudaStreamCreateWithFlags");
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
    options.cuda = pinned_hook(&fake_cuda::api());
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
  EXPECT_FALSE(pinned_hook(nullptr));
}

}  // namespace
}  // namespace millrace::loader::cuda
