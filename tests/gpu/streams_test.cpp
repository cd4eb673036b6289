// SPDX-License-Identifier: Apache-2.0
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/detail/device_pipe.hpp>
#include <millrace/loader/cuda/detail/dlpack_stream.hpp>

#include "gpu/device_sums.hpp"
#include "gpu/harness.hpp"
#include "support/fake_cuda/pinned_source.hpp"
#include "support/fake_cuda/random_batch.hpp"
#include "support/seed.hpp"

namespace millrace::test {
namespace {

using namespace std::chrono_literals;
using loader::cuda::device_batch;
using loader::cuda::device_pipe;
using loader::cuda::stream;

constexpr loader::cuda::batch_rules stream_rules = {
    .eod = 7, .positions = loader::cuda::position_rule::after_eod};

// Each batch is read on two streams, and destroyed as soon as both have the work in their queues.
// The second stream is late at random. No stream waits for the other one.
void use_on_two_streams(stream second,
                        const std::function<void(const device_batch&)>& order_second) {
  constexpr std::size_t count = 300;
  std::mt19937_64 random(seed(12));
  pinned_source source(&gpu_api(), random_batches(random, count, {2, 1500}, stream_rules));
  const std::vector<std::uint64_t> wanted = sums_of(source.batches());
  const auto first = gpu_stream();
  device_sums sums_of_first(count), sums_of_second(count);
  device_pipe pipe(&gpu_api(), source.batches()[0].layout, {.rules = stream_rules},
                   source.source());
  while (const auto batch = pipe.next(first.get().value)) {
    order_second(*batch);
    sums_of_first.add(*batch, 0, first.get().value);
    const std::uint64_t most = random() % 8 == 0 ? 1'000'000 : 50'000;
    sums_of_second.add(*batch, static_cast<std::int64_t>(random() % most), second);
  }
  sums_of_first.expect_sums(wanted, first.get().value);
  sums_of_second.expect_sums(wanted, second);
}

}  // namespace

void a_batch_may_be_used_on_another_stream() {
  const auto second = gpu_stream();
  use_on_two_streams(second.get().value, [&](const device_batch& batch) {
    batch.also_used_on(second.get().value);
    batch.wait_on(second.get().value);
  });
}

// A consumer passes its stream to `__dlpack__`: the address of a stream, or 1 for the default one.
void a_dlpack_consumer_may_bring_its_stream() {
  const auto second = gpu_stream();
  const auto address = reinterpret_cast<std::intptr_t>(second.get().value);
  use_on_two_streams(second.get().value, [&](const device_batch& batch) {
    loader::cuda::order_for_dlpack(batch, address);
  });
  use_on_two_streams(nullptr,
                     [](const device_batch& batch) { loader::cuda::order_for_dlpack(batch, 1); });
}

// The storage is slow at first, so a wait with a time limit gives up. Later calls then find the
// same batch.
void a_wait_for_a_batch_may_give_up() {
  constexpr std::size_t count = 20;
  std::mt19937_64 random(seed(13));
  pinned_source source(&gpu_api(), random_batches(random, count, {2, 500}, stream_rules));
  const std::vector<std::uint64_t> wanted = sums_of(source.batches());
  std::promise<void> storage;
  loader::cuda::batch_source slow = source.source();
  slow.next = [next = std::move(slow.next), ready = storage.get_future().share()] {
    ready.wait();
    return next();
  };
  const auto stream = gpu_stream();
  const loader::cuda::stream on = stream.get().value;
  device_sums sums(count);
  device_pipe pipe(&gpu_api(), source.batches()[0].layout, {.rules = stream_rules},
                   std::move(slow));
  for (int i = 0; i < 3; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    const auto given_up = pipe.next_for(on, 20ms);
    const auto waited = std::chrono::steady_clock::now() - begin;
    if (!given_up.timed_out || given_up.batch) storage.set_value();  // the pipe must be able to end
    expect(given_up.timed_out && !given_up.batch, "next_for gave a batch that is not there");
    expect(waited >= 20ms && waited < 10s, "next_for waited for the wrong time");
  }
  storage.set_value();
  for (;;) {
    const auto next = pipe.next_for(on, 5s);
    expect(!next.timed_out, "next_for gave up though storage is fast");
    if (!next.batch) break;
    sums.add(*next.batch, 50'000, on);
  }
  sums.expect_sums(wanted, on);
}

}  // namespace millrace::test
