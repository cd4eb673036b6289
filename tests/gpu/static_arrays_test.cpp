// SPDX-License-Identifier: Apache-2.0
#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include <millrace/loader/cuda/detail/device_pipe.hpp>

#include "gpu/device_sums.hpp"
#include "gpu/harness.hpp"
#include "gpu/host_arena.hpp"
#include "support/fake_cuda/pinned_source.hpp"
#include "support/fake_cuda/random_batch.hpp"
#include "support/fake_cuda/static_work.hpp"
#include "support/seed.hpp"

namespace millrace::test {
namespace {

using loader::cuda::device_pipe;
using loader::cuda::id_width;

constexpr loader::cuda::batch_rules array_rules = {
    .eod = 7, .positions = loader::cuda::position_rule::after_eod};

// The consumer's own arrays on the device, for at most `rows` rows.
class device_arrays {
 public:
  device_arrays(std::int64_t rows, std::int64_t seq_len, id_width ids) {
    to.rows = rows;
    to.seq_len = seq_len;
    to.ids = ids;
    const auto elements = static_cast<std::size_t>(rows * seq_len);
    const std::size_t id_bytes = elements * static_cast<std::size_t>(ids);
    to.tokens = allocate(id_bytes);
    to.labels = allocate(id_bytes);
    to.position_ids = allocate(id_bytes);
    to.loss_mask = static_cast<float*>(allocate(4 * elements));
    to.segment_ids = static_cast<std::int32_t*>(allocate(4 * elements));
    to.cu_seqlens_size = rows * seq_len + 1;
    to.cu_seqlens = static_cast<std::int32_t*>(allocate(4 * (elements + 1)));
  }

  loader::cuda::static_arrays to;

 private:
  void* allocate(std::size_t bytes) {
    blocks_.push_back(loader::cuda::allocate_device(gpu_api(), bytes));
    return blocks_.back().get().value;
  }

  std::vector<loader::cuda::device_memory> blocks_;
};

// Each batch overwrites the previous one in the same arrays, after the consumer has read them. The
// consumer is late at random. Some batches have fewer rows than the arrays.
void write_batches(id_width ids, std::int64_t seq_len, std::uint64_t most_delay_ns) {
  constexpr std::size_t count = 40;
  std::mt19937_64 random(seed(8));
  std::vector<random_batch> batches;
  for (std::size_t i = 0; i < count; ++i) {
    const random_shape shape{.rows = i % 3 == 1 ? 2 : 4, .seq_len = seq_len, .longest = 300};
    batches.push_back(make_random_batch(random, shape, array_rules));
  }
  pinned_source source(&gpu_api(), std::move(batches));
  const device_arrays arrays(4, seq_len, ids);
  loader::cuda::device_options options{.rules = array_rules};
  options.fields = {.segment_ids = true, .ids = ids, .cu_seqlens_size = arrays.to.cu_seqlens_size};
  const auto stream = gpu_stream();
  const loader::cuda::stream on = stream.get().value;
  const auto sum = loader::cuda::allocate_device(gpu_api(), sizeof(std::uint64_t));
  host_arena arena(std::size_t{32} << 20);
  std::vector<brought_back> results;
  device_pipe pipe(&gpu_api(), source.batches()[0].layout, options, source.source());
  while (const auto batch = pipe.next_into(arrays.to, on)) {
    const auto delay_ns = static_cast<std::int64_t>(random() % most_delay_ns);
    must(add_checksum({}, delay_ns, static_cast<std::uint64_t*>(sum.get().value), on),
         "kernel launch");
    results.emplace_back(work_in(arrays.to, batch->rows), batch->cu_seqlens_used, arena, on);
  }
  loader::cuda::drain(gpu_api(), on);
  expect_equal(results.size(), count, "number of batches");
  for (std::size_t i = 0; i < count; ++i) {
    expect_same(results[i], source.batches()[i],
                "batch " + std::to_string(i) + ", seq_len " + std::to_string(seq_len));
  }
}

}  // namespace

// The lengths are odd, so that the rows are not aligned to the words that the kernel copies.
void writes_batches_into_static_arrays() {
  for (const id_width ids : {id_width::i64, id_width::i32}) {
    write_batches(ids, 77, 300'000);
    write_batches(ids, 4095, 1'000'000);
  }
}

// The graph sums up the same arrays at each launch.
void a_graph_reads_static_arrays() {
  constexpr std::size_t count = 100;
  std::mt19937_64 random(seed(9));
  pinned_source source(&gpu_api(), random_batches(random, count, {2, 1000}, array_rules));
  const device_arrays arrays(2, 1000, id_width::i64);
  loader::cuda::device_options options{.rules = array_rules};
  options.fields.cu_seqlens_size = arrays.to.cu_seqlens_size;
  loader::cuda::static_arrays to = arrays.to;
  to.segment_ids = nullptr;
  std::uint64_t wanted = 0;
  for (const random_batch& batch : source.batches()) {
    expected_fields fields = batch.expected;
    fields.cu_seqlens.resize(static_cast<std::size_t>(to.cu_seqlens_size),
                             fields.cu_seqlens.back());
    wanted += sum_of(fields);
  }
  const auto stream = gpu_stream();
  const cudaStream_t on = stream.get().value;
  const auto room = loader::cuda::allocate_device(gpu_api(), sizeof(std::uint64_t));
  auto* const sum = static_cast<std::uint64_t*>(room.get().value);
  summed_arrays read{.elements = std::int64_t{2} * 1000, .entries = to.cu_seqlens_size};
  read.tokens = static_cast<const std::int64_t*>(to.tokens);
  read.labels = static_cast<const std::int64_t*>(to.labels);
  read.position_ids = static_cast<const std::int64_t*>(to.position_ids);
  read.loss_mask = to.loss_mask;
  read.cu_seqlens = to.cu_seqlens;
  must(add_checksum({}, 0, sum, on), "kernel launch");  // CUDA loads a kernel at its first launch
  must(cudaMemsetAsync(sum, 0, sizeof(std::uint64_t), on), "cudaMemsetAsync");
  must(cudaStreamSynchronize(on), "cudaStreamSynchronize");

  must(cudaStreamBeginCapture(on, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  must(add_checksum(read, 100'000, sum, on), "kernel launch");
  cudaGraph_t graph = nullptr;
  must(cudaStreamEndCapture(on, &graph), "cudaStreamEndCapture");
  cudaGraphExec_t made = nullptr;
  must(cudaGraphInstantiate(&made, graph, 0), "cudaGraphInstantiate");
  const std::unique_ptr<std::remove_pointer_t<cudaGraphExec_t>, cudaError_t (*)(cudaGraphExec_t)>
      step(made, cudaGraphExecDestroy);
  must(cudaGraphDestroy(graph), "cudaGraphDestroy");

  device_pipe pipe(&gpu_api(), source.batches()[0].layout, options, source.source());
  std::size_t served = 0;
  while (pipe.next_into(to, on)) {
    must(cudaGraphLaunch(step.get(), on), "cudaGraphLaunch");
    ++served;
  }
  expect_equal(served, count, "number of batches");
  std::uint64_t found = 0;
  must(cudaMemcpyAsync(&found, sum, sizeof(found), cudaMemcpyDeviceToHost, on), "cudaMemcpyAsync");
  must(cudaStreamSynchronize(on), "cudaStreamSynchronize");
  expect(found == wanted, "the checksum of all launches of the graph is wrong");
}

}  // namespace millrace::test
