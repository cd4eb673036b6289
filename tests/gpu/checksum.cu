// SPDX-License-Identifier: Apache-2.0
#include "gpu/checksum.hpp"

#include "bench/gpu/bounded_spin.cuh"

namespace millrace::test {
namespace {

constexpr unsigned threads = 256;
constexpr unsigned blocks = 16;

template <class T>
__device__ std::uint64_t sum_of(const T* array, std::int64_t count, std::uint64_t number) {
  std::uint64_t sum = 0;
  if (array == nullptr) return sum;
  const std::int64_t step = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x; i < count; i += step) {
    const auto place = 8 * static_cast<std::uint64_t>(i) + number;
    sum += sum_term(static_cast<std::uint64_t>(static_cast<std::int64_t>(array[i])), place);
  }
  return sum;
}

__global__ void __launch_bounds__(threads) checksum_kernel(const summed_arrays arrays,
                                                         std::int64_t delay_ns,
                                                         unsigned long long* sum) {
  bench::device_deadline delay(delay_ns);
  while (!delay.passed()) {
  }
  const std::uint64_t mine = sum_of(arrays.tokens, arrays.elements, 0) +
                             sum_of(arrays.labels, arrays.elements, 1) +
                             sum_of(arrays.position_ids, arrays.elements, 2) +
                             sum_of(arrays.loss_mask, arrays.elements, 3) +
                             sum_of(arrays.cu_seqlens, arrays.entries, 4);
  atomicAdd(sum, static_cast<unsigned long long>(mine));
}

}  // namespace

int add_checksum(const summed_arrays& arrays, std::int64_t delay_ns, std::uint64_t* sum,
                 CUstream_st* on) {
  checksum_kernel<<<blocks, threads, 0, on>>>(arrays, delay_ns,
                                              reinterpret_cast<unsigned long long*>(sum));
  return cudaGetLastError();
}

}  // namespace millrace::test
