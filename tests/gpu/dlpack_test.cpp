// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/detail/device_pipe.hpp>
#include <millrace/loader/cuda/detail/dlpack_tensor.hpp>

#include "gpu/device_sums.hpp"
#include "gpu/harness.hpp"
#include "support/fake_cuda/pinned_source.hpp"
#include "support/fake_cuda/random_batch.hpp"
#include "support/seed.hpp"

namespace millrace::test {
namespace {

using loader::cuda::batch_field;
using loader::cuda::device_pipe;
using loader::cuda::dlpack_tensor;

}  // namespace

void a_tensor_outlives_the_pipe() {
  std::mt19937_64 random(seed(1));
  const auto stream = gpu_stream();
  pinned_source source(&gpu_api(), random_batches(random, 1, {2, 100}, {}));
  dlpack_tensor tokens;
  {
    device_pipe pipe(&gpu_api(), source.batches()[0].layout, {}, source.source());
    tokens = to_dlpack(*pipe.next(stream.get().value), batch_field::tokens);
  }
  const auto memory = loader::cuda::allocate_pinned(gpu_api(), 1600);
  must(gpu_api().copy_to_host(memory.get().value, tokens->tensor.data, 1600, stream.get().value),
       "cudaMemcpyAsync");
  tokens.reset();
  loader::cuda::drain(gpu_api(), stream.get().value);
  expect(std::memcmp(memory.get().value, source.batches()[0].expected.tokens.data(), 1600) == 0,
         "the tokens are wrong");
}

// A second stream does half of the work. The first stream waits for the second before the last
// tensor of a batch is deleted.
void a_tensor_may_be_used_on_two_streams() {
  constexpr std::size_t count = 200;
  std::mt19937_64 random(seed(2));
  pinned_source source(&gpu_api(), random_batches(random, count, {2, 300}, {}));
  std::vector<std::uint64_t> sums_of_tokens, sums_of_labels;
  for (const random_batch& batch : source.batches()) {
    expected_fields tokens, labels;
    tokens.tokens = batch.expected.tokens;
    labels.labels = batch.expected.labels;
    sums_of_tokens.push_back(sum_of(tokens));
    sums_of_labels.push_back(sum_of(labels));
  }
  const auto stream = gpu_stream(), second = gpu_stream();
  const cudaStream_t on = stream.get().value, beside = second.get().value;
  const auto fork = loader::cuda::make_event(gpu_api());
  const auto join = loader::cuda::make_event(gpu_api());
  const auto room = loader::cuda::allocate_device(gpu_api(), 2 * count * sizeof(std::uint64_t));
  auto* const sums = static_cast<std::uint64_t*>(room.get().value);
  must(cudaMemsetAsync(sums, 0, 2 * count * sizeof(std::uint64_t), on), "cudaMemsetAsync");
  device_pipe pipe(&gpu_api(), source.batches()[0].layout, {}, source.source());
  for (std::size_t i = 0; i < count; ++i) {
    auto batch = pipe.next(on);
    expect(batch.has_value(), "the pipe ended early");
    dlpack_tensor tokens = to_dlpack(*batch, batch_field::tokens);
    dlpack_tensor labels = to_dlpack(*batch, batch_field::labels);
    batch.reset();
    const std::int64_t elements = tokens->tensor.shape[0] * tokens->tensor.shape[1];
    const auto delay_ns = static_cast<std::int64_t>(random() % 100'000);
    must(cudaEventRecord(fork.get().value, on), "cudaEventRecord");
    must(cudaStreamWaitEvent(beside, fork.get().value, 0), "cudaStreamWaitEvent");
    summed_arrays here{.elements = elements}, there{.elements = elements};
    here.tokens = static_cast<const std::int64_t*>(tokens->tensor.data);
    there.labels = static_cast<const std::int64_t*>(labels->tensor.data);
    must(add_checksum(here, 0, sums + i, on), "kernel launch");
    must(add_checksum(there, delay_ns, sums + count + i, beside), "kernel launch");
    tokens.reset();
    must(cudaEventRecord(join.get().value, beside), "cudaEventRecord");
    must(cudaStreamWaitEvent(on, join.get().value, 0), "cudaStreamWaitEvent");
    labels.reset();
  }
  std::vector<std::uint64_t> found(2 * count);
  must(cudaMemcpyAsync(found.data(), sums, found.size() * sizeof(found[0]), cudaMemcpyDeviceToHost,
                       on),
       "cudaMemcpyAsync");
  must(cudaStreamSynchronize(on), "cudaStreamSynchronize");
  for (std::size_t i = 0; i < count; ++i) {
    expect(found[i] == sums_of_tokens[i],
           "the tokens of batch " + std::to_string(i) + " are wrong");
    expect(found[count + i] == sums_of_labels[i],
           "the labels of batch " + std::to_string(i) + " are wrong");
  }
}

}  // namespace millrace::test
