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

/// One term of a checksum: the sum of the terms of all elements, in any order, tells arrays apart
/// that differ in a value or in its place.
MILLRACE_TEST_HOST_DEVICE inline std::uint64_t sum_term(std::uint64_t value, std::uint64_t place) {
  std::uint64_t x = value + place * 0x9E3779B97F4A7C15U + 0x632BE59BD9B4E019U;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31);
}

/// The arrays to sum, on the device. Null arrays are left out.
struct summed_arrays {
  const std::int64_t* tokens = nullptr;
  const std::int64_t* labels = nullptr;
  const std::int64_t* position_ids = nullptr;
  const float* loss_mask = nullptr;
  const std::int32_t* cu_seqlens = nullptr;
  std::int64_t elements = 0;  ///< of each array but the last
  std::int64_t entries = 0;   ///< of the last
};

/// Launches a kernel that waits for `delay_ns` (at most 1 s), and then adds the checksum of the
/// arrays to `sum`, which is on the device. Returns a cudaError_t.
int add_checksum(const summed_arrays& arrays, std::int64_t delay_ns, std::uint64_t* sum,
                 CUstream_st* on);

}  // namespace millrace::test
