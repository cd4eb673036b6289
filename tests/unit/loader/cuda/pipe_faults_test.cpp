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

#include "support/fake_cuda/checking_consumer.hpp"
#include "support/fake_cuda/fake_cuda.hpp"
#include "support/fake_cuda/pinned_source.hpp"
#include "support/seed.hpp"

// Makes each call of the runtime fail in turn, including the waits. Work and calls are late at
// random. In all cases, every batch must be right, and nothing may hang. No slot may be overwritten
// during a copy, and no memory may be freed while work uses it.

namespace millrace::loader::cuda {
namespace {

using namespace std::chrono_literals;
using test::fake_cuda;
using test::work_kind;
using testing::IsEmpty;

constexpr std::int64_t faulty_batches = 6;

enum class failing : std::uint8_t {
  one_call,  // the k-th call
  one_wait,  // the k-th call that waits on the host
  calls,     // the k-th call and all later ones
  waits,     // the k-th call that waits on the host and all later ones
};

std::string name_of(failing which) {
  constexpr const char* names[] = {"OneCall", "OneWait", "Calls", "Waits"};
  return names[static_cast<std::size_t>(which)];
}

struct fault_outcome {
  bool failed = false;  ///< at least one call failed on request
  bool thrown = false;  ///< the consumer got an exception
  std::int64_t served = 0;
};

void inject(fake_cuda& cuda, failing which, std::int64_t k) {
  if (which == failing::one_call) cuda.fail_call(k, 999);
  if (which == failing::one_wait) cuda.fail_call("cudaEventSynchronize", k, 999);
  if (which == failing::calls) cuda.fail_calls_from("", k, 999);
  if (which == failing::waits) cuda.fail_calls_from("Synchronize", k, 999);
}

fault_outcome serve_with_fault(failing which, std::int64_t k, work_kind late, std::uint64_t seed) {
  fault_outcome outcome;
  std::mt19937_64 random(seed);
  const batch_rules rules = {.eod = 7, .positions = position_rule::after_eod};
  std::vector<test::random_batch> batches;
  for (std::int64_t i = 0; i < faulty_batches; ++i) {
    batches.push_back(test::make_random_batch(random, {.rows = 1, .seq_len = 20}, rules));
  }
  fake_cuda cuda(seed);
  cuda.jitter(100us, 50us);
  // The pipe does not wait for copies that it knows to be done.
  if (which == failing::one_wait || which == failing::waits) cuda.answer_queries_late();
  cuda.delay(late, 1ms);
  test::pinned_source source(&fake_cuda::api(), std::move(batches));
  source.tell_writes(
      [&](const void* memory, std::size_t bytes) { cuda.host_writes(memory, bytes); });
  const owned_stream stream = make_stream(fake_cuda::api());
  const cuda::stream on = stream.get().value;
  test::checking_consumer consumer(cuda);
  const std::size_t before = cuda.calls().size();
  inject(cuda, which, k);
  try {
    device_pipe pipe(&fake_cuda::api(), source.batches()[0].layout,
                     {.look_ahead = 1, .rules = rules}, source.source());
    while (std::optional<device_batch> batch = pipe.next(on)) {
      consumer.use(*batch, source.batches()[static_cast<std::size_t>(outcome.served++)], on);
    }
  } catch (const cuda_error& e) {
    EXPECT_EQ(e.code(), 999);
    outcome.thrown = true;
  }
  cuda.fail_call(0, 0);
  const std::vector<fake_cuda::call> calls = cuda.calls();
  for (std::size_t i = before; i < calls.size(); ++i) {
    outcome.failed = outcome.failed || calls[i].code == 999;
  }
  EXPECT_TRUE(outcome.thrown || outcome.served == faulty_batches) << outcome.served;
  EXPECT_EQ(cuda.error_left(), 0);
  drain(fake_cuda::api(), on);
  EXPECT_EQ(consumer.seen(), outcome.served);
  EXPECT_THAT(consumer.wrong(), IsEmpty());
  EXPECT_THAT(cuda.faults(), IsEmpty());
  return outcome;
}

class PipeFaults : public testing::TestWithParam<failing> {};

TEST_P(PipeFaults, ServeNothingWrong) {
  std::mt19937_64 random(test::seed(9));
  std::int64_t told = 0;
  for (const work_kind late : {work_kind::copy, work_kind::kernel, work_kind::other}) {
    bool failed = true;
    for (std::int64_t k = 1; failed; ++k) {
      SCOPED_TRACE(testing::Message() << "call " << k << ", late " << static_cast<int>(late));
      const fault_outcome outcome = serve_with_fault(GetParam(), k, late, random());
      failed = outcome.failed;
      told += outcome.thrown ? 1 : 0;
    }
  }
  EXPECT_GE(told, 15);
}

INSTANTIATE_TEST_SUITE_P(Of, PipeFaults,
                         testing::Values(failing::one_call, failing::one_wait, failing::calls,
                                         failing::waits),
                         [](const auto& one) { return name_of(one.param); });

}  // namespace
}  // namespace millrace::loader::cuda
