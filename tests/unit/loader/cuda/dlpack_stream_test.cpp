// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/cuda/detail/dlpack_stream.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <millrace/loader/cuda/detail/device_pipe.hpp>

#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/fake_cuda/pinned_source.hpp"

namespace millrace::loader::cuda {
namespace {

using namespace std::chrono_literals;
using test::fake_cuda;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<test::random_batch> drawn_batches(std::size_t count) {
  std::mt19937_64 random(29);
  std::vector<test::random_batch> result;
  for (std::size_t i = 0; i < count; ++i) {
    result.push_back(test::make_random_batch(random, {.rows = 2, .seq_len = 40}, {}));
  }
  return result;
}

std::int64_t number_of(stream which) {
  return static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(which));
}

template <class Act>
std::string refusal_of(Act act) {
  try {
    act();
  } catch (const config_error& e) {
    return e.what();
  }
  return "nothing was thrown";
}

// The consumer uses its own stream, as JAX does, or the default stream. The consumer is slow, but
// must find each batch complete and not yet overwritten.
TEST(DlpackStream, OrdersTheConsumersOwnStream) {
  for (const bool default_stream : {false, true}) {
    SCOPED_TRACE(default_stream);
    fake_cuda cuda(3);
    cuda.delay(test::work_kind::kernel, 1ms);
    cuda.delay(test::work_kind::other, 3ms);
    test::pinned_source source(&fake_cuda::api(), drawn_batches(12));
    const owned_stream first = make_stream(fake_cuda::api());
    const owned_stream second = make_stream(fake_cuda::api());
    const stream used = default_stream ? nullptr : second.get().value;
    test::checking_consumer consumer(cuda);
    {
      device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
      for (const test::random_batch& wanted : source.batches()) {
        const auto batch = pipe.next(first.get().value);
        if (default_stream) {
          if (batch->micro_batch() % 2 == 0) order_for_dlpack(*batch, std::nullopt);
          if (batch->micro_batch() % 2 == 1) order_for_dlpack(*batch, 1);
        } else {
          order_for_dlpack(*batch, number_of(used));
          order_for_dlpack(*batch, number_of(used));  // once per tensor, and a batch has several
        }
        consumer.use(*batch, wanted, used);
      }
    }
    drain(fake_cuda::api(), used);
    EXPECT_EQ(consumer.seen(), 12);
    EXPECT_THAT(consumer.wrong(), IsEmpty());
    EXPECT_THAT(cuda.faults(), IsEmpty());
  }
}

TEST(DlpackStream, CreatesEventsOnlyOnce) {
  fake_cuda cuda;
  test::pinned_source source(&fake_cuda::api(), drawn_batches(30));
  const owned_stream first = make_stream(fake_cuda::api());
  const owned_stream second = make_stream(fake_cuda::api());
  device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
  const std::int64_t before = cuda.calls_of("cudaEventCreateWithFlags");
  for (const device_batch& batch : pipe.on(first.get().value)) {
    order_for_dlpack(batch, number_of(second.get().value));
    order_for_dlpack(batch, number_of(first.get().value));
    order_for_dlpack(batch, -1);
  }
  EXPECT_LE(cuda.calls_of("cudaEventCreateWithFlags") - before, 4) << "one for each slot at most";
  EXPECT_GE(cuda.calls_of("cudaEventCreateWithFlags") - before, 1);
}

TEST(DlpackStream, RefusesWhatTheStandardDoes) {
  fake_cuda cuda;
  test::pinned_source source(&fake_cuda::api(), drawn_batches(3));
  const owned_stream stream = make_stream(fake_cuda::api());
  const owned_stream captured = make_stream(fake_cuda::api());
  device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
  const auto batch = pipe.next(stream.get().value);
  const auto said = [&](std::int64_t handle) {
    return refusal_of([&] { order_for_dlpack(*batch, handle); });
  };
  EXPECT_EQ(said(0),
            "the stream of __dlpack__ is 0, expected none, -1, 1 (the default stream), or a "
            "stream's address");
  EXPECT_THAT(said(2), HasSubstr("is cudaStreamPerThread (handle 2)"));
  EXPECT_EQ(cuda.begin_capture(captured.get().value), 0);
  EXPECT_EQ(refusal_of([&] { batch->wait_on(captured.get().value); }),
            "a stream is being captured into a CUDA graph, and cannot wait for a batch meanwhile: "
            "order it after the batch before the capture begins");
  EXPECT_EQ(cuda.end_capture(captured.get().value), 0);
  EXPECT_EQ(said(-1), "nothing was thrown");
}

// A batch ends while another stream that uses it is being captured. The result must be the same as
// for a capture of the batch's own stream.
TEST(DlpackStream, AnotherStreamMayNotBeCapturedAtTheEnd) {
  fake_cuda cuda;
  test::pinned_source source(&fake_cuda::api(), drawn_batches(3));
  const owned_stream stream = make_stream(fake_cuda::api());
  const owned_stream other = make_stream(fake_cuda::api());
  {
    device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout, {}, source.source());
    auto batch = pipe.next(stream.get().value);
    batch->also_used_on(other.get().value);
    ASSERT_EQ(cuda.begin_capture(other.get().value), 0);
    batch.reset();
    EXPECT_EQ(cuda.end_capture(other.get().value), 0);
    EXPECT_EQ(pipe.report().captured, 1);
    EXPECT_THROW((void)pipe.next(stream.get().value), error);
  }
  EXPECT_THAT(cuda.faults(), IsEmpty());
}

TEST(DlpackStream, MeansNothingOnTheHost) {
  test::pinned_source source(nullptr, drawn_batches(2));
  device_pipe pipe(nullptr, source.batches()[0].layout, {.no_device = no_device_rule::host},
                   source.source());
  const auto batch = pipe.next(nullptr);
  order_for_dlpack(*batch, std::nullopt);
  order_for_dlpack(*batch, 0);
  batch->also_used_on(nullptr);
  batch->wait_on(nullptr);
  EXPECT_FALSE(batch->on_device());
}

}  // namespace
}  // namespace millrace::loader::cuda
