// SPDX-License-Identifier: Apache-2.0
#include "bench/gpu/spin.hpp"

namespace millrace::bench {
namespace {

__device__ unsigned long long now() {
  unsigned long long time;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time));
  return time;
}

__global__ void spin_kernel(const std::int64_t* tokens, std::int64_t rows, std::int64_t seq_len,
                            std::int64_t* sum, std::int64_t nanoseconds) {
  const unsigned long long end = now() + static_cast<unsigned long long>(nanoseconds);
  std::int64_t total = 0;
  for (std::int64_t row = 0; row < rows; ++row) total += tokens[row * seq_len];
  while (now() < end) {
  }
  *sum = total;
}

}  // namespace

int spin(const std::int64_t* tokens, std::int64_t rows, std::int64_t seq_len, std::int64_t* sum,
         std::int64_t nanoseconds, CUstream_st* on) {
  spin_kernel<<<1, 1, 0, on>>>(tokens, rows, seq_len, sum, nanoseconds);
  return cudaGetLastError();
}

}  // namespace millrace::bench
