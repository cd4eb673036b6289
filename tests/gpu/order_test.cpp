// SPDX-License-Identifier: Apache-2.0
#include <cuda.h>
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/detail/device_pipe.hpp>

#include "gpu/device_sums.hpp"
#include "gpu/driver.hpp"
#include "gpu/harness.hpp"
#include "support/fake_cuda/pinned_source.hpp"
#include "support/fake_cuda/random_batch.hpp"
#include "support/seed.hpp"

namespace millrace::test {
namespace {

using loader::cuda::device_pipe;

constexpr loader::cuda::batch_rules usual_rules = {
    .eod = 7, .eod_mask_loss = true, .positions = loader::cuda::position_rule::after_eod};

// The host only enqueues work, so it runs ahead of its stream as far as the pipe allows. The delays
// have very different lengths, so that sometimes the host waits for the stream, and sometimes the
// stream waits for the host.
void serve_slowly(const random_shape& shape, std::size_t count, std::int64_t most_delay_ns) {
  std::mt19937_64 random(seed(17));
  const auto stream = gpu_stream();
  pinned_source source(&gpu_api(), random_batches(random, count, shape, usual_rules));
  const std::vector<std::uint64_t> wanted = sums_of(source.batches());
  device_sums sums(count);
  device_pipe pipe(&gpu_api(), source.batches()[0].layout, {.rules = usual_rules}, source.source());
  for (const auto& batch : pipe.on(stream.get().value)) {
    const auto most =
        static_cast<std::uint64_t>(random() % 8 == 0 ? most_delay_ns : most_delay_ns / 50);
    sums.add(batch, static_cast<std::int64_t>(random() % most), stream.get().value);
  }
  sums.expect_sums(wanted, stream.get().value);
  expect_equal(pipe.report().batches, count, "batches in the report");
}

void* current_context() {
  static const auto get = driver_function<CUresult (*)(CUcontext*)>("cuCtxGetCurrent");
  CUcontext found = nullptr;
  expect(get != nullptr && get(&found) == CUDA_SUCCESS, "cuCtxGetCurrent failed");
  return found;
}

}  // namespace

void a_slow_consumer_finds_every_batch() {
  serve_slowly({2, 64}, 10000, 1'000'000);
}

void a_slow_consumer_finds_every_large_batch() {
  serve_slowly({8, 4096}, 200, 20'000'000);
}

// Each batch is destroyed on a thread that has never used CUDA. On the consumer's thread, another
// device is current if the machine has one. Serving and destroying batches must not change the
// current device of either thread. Afterwards, the thread that destroys batches must still have
// none.
void batches_may_be_destroyed_on_foreign_threads() {
  std::mt19937_64 random(seed(3));
  const auto stream = gpu_stream();
  constexpr std::size_t count = 40;
  pinned_source source(&gpu_api(), random_batches(random, count, {2, 256}, usual_rules));
  const std::vector<std::uint64_t> wanted = sums_of(source.batches());
  device_sums sums(count);
  device_pipe pipe(&gpu_api(), source.batches()[0].layout, {.rules = usual_rules}, source.source());
  int devices = 0;
  must(cudaGetDeviceCount(&devices), "cudaGetDeviceCount");
  const int other = devices > 1 ? 1 : 0;
  for (std::size_t i = 0; i < count; ++i) {
    must(cudaSetDevice(other), "cudaSetDevice");
    auto batch = pipe.next(stream.get().value);
    expect(batch.has_value(), "the pipe ended early");
    must(cudaSetDevice(0), "cudaSetDevice");
    sums.add(*batch, 100'000, stream.get().value);
    must(cudaSetDevice(other), "cudaSetDevice");
    void* left_behind = nullptr;
    std::thread([&batch, &left_behind] {
      { const auto ended = std::move(*batch); }
      left_behind = current_context();
    }).join();
    expect(left_behind == nullptr, "a thread has a context after it destroyed a batch");
    int current = -1;
    must(cudaGetDevice(&current), "cudaGetDevice");
    expect_equal(current, other, "current device of the consumer's thread");
  }
  must(cudaSetDevice(0), "cudaSetDevice");
  sums.expect_sums(wanted, stream.get().value);
}

// Destroys the pipe while work is running. The last batch is destroyed either before or after the
// pipe.
void a_pipe_may_end_at_any_time() {
  std::mt19937_64 random(seed(5));
  const auto stream = gpu_stream();
  const loader::cuda::stream on = stream.get().value;
  for (std::size_t taken = 0; taken <= 12; ++taken) {
    for (const bool batch_outlives_pipe : {false, true}) {
      pinned_source source(&gpu_api(), random_batches(random, 12, {3, 1000}, usual_rules));
      std::vector<std::uint64_t> wanted = sums_of(source.batches());
      wanted.resize(taken);
      device_sums sums(12);
      auto pipe = std::make_unique<device_pipe>(&gpu_api(), source.batches()[0].layout,
                                                loader::cuda::device_options{.rules = usual_rules},
                                                source.source());
      std::optional<loader::cuda::device_batch> last;
      for (std::size_t i = 0; i < taken; ++i) {
        last.reset();
        last = pipe->next(on);
        expect(last.has_value(), "the pipe ended early");
        sums.add(*last, 500'000, on);
      }
      if (!batch_outlives_pipe) last.reset();
      pipe.reset();
      last.reset();
      sums.expect_sums(wanted, on);
      expect_equal(static_cast<int>(cudaGetLastError()), 0, "error left in the runtime");
    }
  }
}

}  // namespace millrace::test
