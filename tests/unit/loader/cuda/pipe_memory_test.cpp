// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/detail/device_pipe.hpp>
#include <millrace/loader/cuda/detail/pinned_hook.hpp>

#include "support/child_process.hpp"
#include "support/fail_kth_allocation.hpp"
#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/fake_cuda/pinned_source.hpp"
#include "support/seed.hpp"

// Makes allocations of the host fail. In all cases, every batch must be right, no slot may be lost,
// and nothing may hang. No memory may be freed or overwritten while work uses it.

namespace millrace::loader::cuda {
namespace {

using namespace std::chrono_literals;
using test::fake_cuda;
using testing::AnyOf;
using testing::IsEmpty;

constexpr std::int64_t scarce_batches = 7;
constexpr auto always = test::fail_kth_allocation::never;

template <auto Member>
struct exempt_call;

template <class Result, class... Arguments, Result (*cuda_api::*Member)(Arguments...)>
struct exempt_call<Member> {
  static Result make(Arguments... arguments) {
    const test::exempt_allocations exempt;
    return (fake_cuda::api().*Member)(arguments...);
  }
};

template <auto... Members>
cuda_api with_exempt_calls() {
  cuda_api table = fake_cuda::api();
  ((table.*Members = &exempt_call<Members>::make), ...);
  return table;
}

// The fake runtime, whose own allocations succeed.
const cuda_api& roomy_api() {
  using api = cuda_api;
  static const cuda_api table = with_exempt_calls<
      &api::driver_version, &api::device_count, &api::use_device, &api::push_device,
      &api::pop_device, &api::compute_capability, &api::allocate, &api::free, &api::allocate_pinned,
      &api::free_pinned, &api::priority_range, &api::create_stream, &api::destroy_stream,
      &api::synchronize_stream, &api::capture_status, &api::exchange_capture_mode,
      &api::create_event, &api::destroy_event, &api::record_event, &api::synchronize_event,
      &api::query_event, &api::wait_event, &api::copy_to_device, &api::memory_device,
      &api::launch_batch, &api::launch_copies, &api::find_kernels, &api::last_error>();
  return table;
}

const batch_rules scarce_rules = {.eod = 7, .positions = position_rule::after_eod};

std::vector<test::random_batch> scarce_batches_of(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<test::random_batch> batches;
  for (std::int64_t i = 0; i < scarce_batches; ++i) {
    batches.push_back(test::make_random_batch(random, {.rows = 2, .seq_len = 30}, scarce_rules));
  }
  return batches;
}

enum class served_by : std::uint8_t { next, next_for, next_into };

std::string name_of(served_by which) {
  constexpr const char* names[] = {"Next", "NextFor", "NextInto"};
  return names[static_cast<std::size_t>(which)];
}

// A simulated device with a source and a consumer that uses two streams.
class scarce_run {
 public:
  explicit scarce_run(std::uint64_t seed)
      : cuda(seed),
        source(&fake_cuda::api(), scarce_batches_of(seed)),
        own_(make_stream(fake_cuda::api())),
        other_(make_stream(fake_cuda::api())),
        tokens_(allocate_device(fake_cuda::api(), std::size_t{8} * 2 * 30)),
        on(own_.get().value),
        consumer(cuda),
        alive(cuda.alive()) {
    source.tell_writes([this](const void* memory, std::size_t bytes) {
      const test::exempt_allocations exempt;
      cuda.host_writes(memory, bytes);
    });
    options.look_ahead = 1;
    options.rules = scarce_rules;
    arrays_.rows = 2;
    arrays_.seq_len = 30;
    arrays_.tokens = tokens_.get().value;
  }

  const slot_layout& layout() const { return source.batches()[0].layout; }

  // Takes one batch and uses it. Returns false after the last one.
  bool serve(device_pipe& pipe, served_by by) {
    if (by == served_by::next_into) {
      const auto batch = pipe.next_into(arrays_, on);
      if (!batch) return false;
      const test::exempt_allocations exempt;
      EXPECT_EQ(batch->number.micro_batch, served);
      batch_work found;
      found.rows = batch->rows;
      found.seq_len = 30;
      found.tokens = arrays_.tokens;
      consumer.use(found, 0, served, expected(), on);
    } else {
      const auto batch = by == served_by::next ? pipe.next(on) : pipe.next_for(on, 10s).batch;
      if (!batch) return false;
      use(*batch);
    }
    ++served;
    return true;
  }

  void check() {
    drain(fake_cuda::api(), on);
    drain(fake_cuda::api(), other_.get().value);
    EXPECT_THAT(consumer.wrong(), IsEmpty());
    EXPECT_THAT(cuda.faults(), IsEmpty());
    EXPECT_EQ(cuda.error_left(), 0);
  }

 private:
  const test::random_batch& expected() const {
    return source.batches()[static_cast<std::size_t>(served)];
  }

  // Uses the batch on two streams, if there is memory for the second one.
  void use(const device_batch& batch) {
    const stream other = other_.get().value;
    bool shared = true;
    try {
      batch.also_used_on(other);
      batch.wait_on(other);
    } catch (const std::bad_alloc&) {
      shared = false;
    }
    const test::exempt_allocations exempt;
    EXPECT_EQ(batch.micro_batch(), served);
    consumer.use(batch, expected(), on);
    if (shared) consumer.use(batch, expected(), other);
  }

 public:
  fake_cuda cuda;
  test::pinned_source source;

 private:
  owned_stream own_;
  owned_stream other_;
  device_memory tokens_;
  static_arrays arrays_;

 public:
  const stream on;
  test::checking_consumer consumer;
  const std::size_t alive;
  device_options options;
  std::int64_t served = 0;
};

// Runs a pipe from its construction to its end, while allocations of all threads fail. Returns
// whether one failed.
bool serve_with_failing(const test::fail_kth_allocation& failing, served_by by,
                        std::uint64_t seed) {
  scarce_run run(seed);
  batch_source batches = run.source.source();
  int thrown = 0;
  test::arm(failing);
  try {
    device_pipe pipe(&roomy_api(), run.layout(), run.options, std::move(batches));
    for (bool more = true; more && thrown < 2 * scarce_batches;) {
      try {
        more = run.serve(pipe, by);
      } catch (const std::bad_alloc&) {
        ++thrown;
      }
    }
  } catch (const std::bad_alloc&) {
    ++thrown;
  }
  const bool failed = test::disarm() >= failing.k;
  EXPECT_TRUE(thrown > 0 || run.served == scarce_batches) << run.served;
  EXPECT_TRUE(failed || thrown == 0);
  run.check();
  EXPECT_EQ(run.cuda.alive(), run.alive);
  return failed;
}

class PipeMemory : public testing::TestWithParam<served_by> {};

TEST_P(PipeMemory, AFailedAllocationSpoilsNothing) {
  if (!test::allocations_can_fail) GTEST_SKIP() << "the allocations of a sanitizer do not fail";
  std::mt19937_64 random(test::seed(31));
  for (const std::int64_t failures : {std::int64_t{1}, always}) {
    std::int64_t k = 1;
    for (bool failed = true; failed; ++k) {
      SCOPED_TRACE(testing::Message() << "allocation " << k << ", and " << failures - 1 << " more");
      failed = serve_with_failing({.k = k, .failures = failures}, GetParam(), random());
    }
    EXPECT_GT(k, 20);
  }
}

// The consumer's thread runs out of memory in a call and makes the same call again. If a call took
// a slot before it had all its memory, the second call would miss a batch, and the slot would be
// lost.
TEST_P(PipeMemory, AFailedCallMayBeMadeAgain) {
  if (!test::allocations_can_fail) GTEST_SKIP() << "the allocations of a sanitizer do not fail";
  scarce_run run(test::seed(32));
  batch_source batches = run.source.source();
  batches.next = [next = std::move(batches.next)] {
    thread_local std::optional<test::exempt_allocations> exempt;  // until the pipe's thread ends
    if (!exempt) exempt.emplace();
    return next();
  };
  run.options.held = 1;  // a lost slot is noticed at once
  std::int64_t thrown = 0;
  {
    device_pipe pipe(&roomy_api(), run.layout(), run.options, std::move(batches));
    EXPECT_TRUE(run.serve(pipe, GetParam()));
    while (run.served < scarce_batches && thrown < 100) {
      for (std::int64_t k = 1;; ++k) {
        test::arm({.k = k});
        bool more = false;
        try {
          more = run.serve(pipe, GetParam());
        } catch (const std::bad_alloc&) {
          ++thrown;
        }
        (void)test::disarm();
        if (more) break;
        if (k == 20) {
          ADD_FAILURE() << "batch " << run.served << " is never served";
          thrown = 100;
          break;
        }
      }
    }
    EXPECT_FALSE(run.serve(pipe, GetParam()));
  }
  EXPECT_EQ(run.served, scarce_batches);
  EXPECT_GE(thrown, scarce_batches - 1);
  run.check();
  EXPECT_EQ(run.cuda.alive(), run.alive);
}

INSTANTIATE_TEST_SUITE_P(Of, PipeMemory,
                         testing::Values(served_by::next, served_by::next_for,
                                         served_by::next_into),
                         [](const auto& one) { return name_of(one.param); });

// In the following tests, calls of the runtime fail while there is no memory for the error's text.

// A batch cannot throw when it is destroyed, so the next call of next() must throw.
TEST(PipeMemoryAtAnError, OfARelease) {
  if (!test::allocations_can_fail) GTEST_SKIP() << "the allocations of a sanitizer do not fail";
  scarce_run run(33);
  {
    device_pipe pipe(&roomy_api(), run.layout(), run.options, run.source.source());
    std::optional<device_batch> batch = pipe.next(run.on);
    while (pipe.report().batches < 3) std::this_thread::yield();  // the pipe's thread now waits
    test::arm({.k = 1, .failures = always});
    run.cuda.fail_call("cudaEventRecord", 1, 999);
    batch.reset();
    EXPECT_GT(test::disarm(), 0);
    EXPECT_THROW((void)pipe.next(run.on), std::bad_alloc);
    EXPECT_FALSE(pipe.next(run.on).has_value());
  }
  run.check();
  EXPECT_EQ(run.cuda.alive(), run.alive + 2) << "the memory, which the consumer may still use";
}

TEST(PipeMemoryAtAnError, OfTheLastWaits) {
  if (!test::allocations_can_fail) GTEST_SKIP() << "the allocations of a sanitizer do not fail";
  scarce_run run(34);
  {
    // The number of batches is unknown, so the last call waits for the end of the pipe's thread.
    device_pipe pipe(&roomy_api(), run.layout(), run.options, run.source.source(false));
    while (run.serve(pipe, served_by::next)) {
    }
    run.cuda.fail_calls_from("Synchronize", 1, 999);
    test::arm({.k = 1, .failures = always});
  }
  EXPECT_GT(test::disarm(), 0);
  run.cuda.fail_call(0, 0);
  run.check();
  EXPECT_EQ(run.cuda.alive(), run.alive + 2) << "the memory, which work may still use";
}

// The pipe cannot wait for a copy, and cannot keep the source's slot in a list either. The slot
// must not be filled again. The child ends without its destructors, because the slot is leaked.
TEST(PipeMemoryAtAnError, OfACopyThatIsLate) {
  if (!test::allocations_can_fail) GTEST_SKIP() << "the allocations of a sanitizer do not fail";
  const int status = test::in_child([] {
    scarce_run run(35);
    run.cuda.delay(test::work_kind::copy, 50ms);
    batch_source batches = run.source.source();
    batches.next = [&run, next = std::move(batches.next)] {
      if (run.cuda.calls_of("cudaMemcpyAsync") == 1) {
        run.cuda.fail_calls_from("Synchronize", 1, 999);
        test::arm({.k = 1, .failures = always});
      }
      return next();
    };
    bool thrown = false;
    {
      device_pipe pipe(&roomy_api(), run.layout(), run.options, std::move(batches));
      try {
        while (run.serve(pipe, served_by::next)) {
        }
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
    }
    (void)test::disarm();
    run.cuda.fail_call(0, 0);
    run.check();
    return thrown && !testing::Test::HasFailure() ? 0 : 1;
  });
  EXPECT_EQ(status, 0);
}

TEST(PipeMemoryAtAnError, OfTheHookForPinnedMemory) {
  if (!test::allocations_can_fail) GTEST_SKIP() << "the allocations of a sanitizer do not fail";
  fake_cuda cuda;
  const pinned_memory_hook hook = pinned_hook(&roomy_api(), 0);
  std::string why;
  void* const memory = hook.allocate(hook.context, 100, why);
  ASSERT_NE(memory, nullptr) << why;
  cuda.fail_call("cuCtxPushCurrent", 1, 999);
  test::arm({.k = 1, .failures = always});
  hook.release(hook.context, memory);
  EXPECT_GT(test::disarm(), 0);
  EXPECT_EQ(cuda.alive(), 0U);
  cuda.fail_call("cuCtxPushCurrent", 1, 999);
  test::arm({.k = 1, .failures = always});
  void* const refused = hook.allocate(hook.context, 100, why);
  (void)test::disarm();
  EXPECT_EQ(refused, nullptr);
  EXPECT_THAT(why, AnyOf("std::bad_alloc", "no memory"));
  EXPECT_THAT(cuda.faults(), IsEmpty());
}

}  // namespace
}  // namespace millrace::loader::cuda
