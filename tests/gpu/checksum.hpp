// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define MILLRACE_TEST_HOST_DEVICE __host__ __device__
#else
#define MILLRACE_TEST_HOST_DEVICE
#endif

struct CUstream_st;

namespace millrace::test {

/// Returns the term of one element in a checksum. The checksum is the sum of the terms of all
/// elements, so threads may add them in any order. The checksum changes if a value changes or moves
/// to another place.
MILLRACE_TEST_HOST_DEVICE inline std::uint64_t sum_term(std::uint64_t value, std::uint64_t place) {
  std::uint64_t x = value + place * 0x9E3779B97F4A7C15U + 0x632BE59BD9B4E019U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

/// The arrays to sum, in device memory. Null arrays are skipped.
struct summed_arrays {
  const std::int64_t* tokens = nullptr;
  const std::int64_t* labels = nullptr;
  const std::int64_t* position_ids = nullptr;
  const float* loss_mask = nullptr;
  const std::int32_t* cu_seqlens = nullptr;
  std::int64_t elements = 0;  ///< number of elements in each array except `cu_seqlens`
  std::int64_t entries = 0;   ///< number of elements in `cu_seqlens`
};

/// Launches a kernel that waits for `delay_ns` (at most 1 s) and then adds the checksum of the
/// arrays to `sum`, which is in device memory. Returns a `cudaError_t`.
int add_checksum(const summed_arrays& arrays, std::int64_t delay_ns, std::uint64_t* sum,
                 CUstream_st* on);

}  // namespace millrace::test
