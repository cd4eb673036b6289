// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/spin.hpp"

#include "bench/gpu/bounded_spin.cuh"

namespace millrace::bench {
namespace {

constexpr unsigned spin_threads = 1024;
constexpr unsigned copy_threads = 256;
constexpr std::size_t copied_bytes = std::size_t{256} << 20;  // more than fits in any L2 cache

__device__ void read_tokens(const std::int64_t* tokens, std::int64_t rows, std::int64_t seq_len,
                            std::int64_t* sum) {
  if (blockIdx.x != 0 || threadIdx.x != 0) return;
  std::int64_t total = 0;
  for (std::int64_t row = 0; row < rows; ++row) total += tokens[row * seq_len];
  *sum = total;
}

__global__ void __launch_bounds__(spin_threads) spin_kernel(const std::int64_t* tokens, std::int64_t rows,
                                                          std::int64_t seq_len, std::int64_t* sum,
                                                          std::int64_t nanoseconds) {
  device_deadline deadline(nanoseconds);
  read_tokens(tokens, rows, seq_len, sum);
  while (!deadline.passed()) {
  }
}

// Copies the first half of the buffer to the second half again and again, until `nanoseconds` have
// passed.
__global__ void __launch_bounds__(copy_threads) copy_kernel(float4* buffer, std::size_t half,
                                                          const std::int64_t* tokens, std::int64_t rows,
                                                          std::int64_t seq_len, std::int64_t* sum,
                                                          std::int64_t nanoseconds) {
  device_deadline deadline(nanoseconds);
  read_tokens(tokens, rows, seq_len, sum);
  const std::size_t threads = std::size_t{gridDim.x} * blockDim.x;
  std::size_t at = std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  while (!deadline.passed()) {
    for (int i = 0; i < 8; ++i) {
      buffer[half + at] = buffer[at];
      at += threads;
      if (at >= half) at -= half;
    }
  }
}

__global__ void empty_kernel() {
}

}  // namespace

int plan_step(load load, step_kernel* plan) {
  *plan = step_kernel{};
  plan->load = load;
  int device = 0, processors = 0, shared = 0;
  cudaError_t code = cudaGetDevice(&device);
  if (code == cudaSuccess) {
    code = cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device);
  }
  if (code == cudaSuccess) {
    code = cudaDeviceGetAttribute(&shared, cudaDevAttrMaxSharedMemoryPerBlockOptin, device);
  }
  if (code != cudaSuccess) return code;
  if (load == load::memory) {
    int threads = 0;
    code = cudaDeviceGetAttribute(&threads, cudaDevAttrMaxThreadsPerMultiProcessor, device);
    plan->blocks = static_cast<unsigned>(processors * (threads / 2)) / copy_threads;
    plan->buffer_bytes = 2 * copied_bytes;
    return code;
  }
  if (load == load::all_sms) plan->blocks = static_cast<unsigned>(processors);
  plan->shared_bytes = static_cast<std::size_t>(shared);
  return cudaFuncSetAttribute(spin_kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
}

int run_step(const step_kernel& plan, void* buffer, const std::int64_t* tokens, std::int64_t rows,
             std::int64_t seq_len, std::int64_t* sum, std::int64_t nanoseconds, CUstream_st* on) {
  if (plan.load == load::memory) {
    copy_kernel<<<plan.blocks, copy_threads, 0, on>>>(static_cast<float4*>(buffer),
                                                      copied_bytes / sizeof(float4), tokens, rows,
                                                      seq_len, sum, nanoseconds);
  } else {
    spin_kernel<<<plan.blocks, spin_threads, plan.shared_bytes, on>>>(tokens, rows, seq_len, sum,
                                                                      nanoseconds);
  }
  return cudaGetLastError();
}

int run_nothing(CUstream_st* on) {
  empty_kernel<<<1, 1, 0, on>>>();
  return cudaGetLastError();
}

}  // namespace millrace::bench
