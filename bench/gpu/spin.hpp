// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

/// Kernels that simulate a training step. All functions return a `cudaError_t` as an int.
namespace millrace::bench {

/// What a simulated training step keeps busy.
enum class load : std::uint8_t {
  one_sm,   ///< one multiprocessor, so nothing competes with the loader
  all_sms,  ///< all multiprocessors, so no other kernel can start until the step ends
  memory,   ///< the bandwidth of device memory, and half of each multiprocessor
};

/// How to launch the kernel of a simulated training step.
struct step_kernel {
  bench::load load = load::one_sm;
  unsigned blocks = 1;
  /// bytes of shared memory per block: so many that no other block fits on the same multiprocessor
  std::size_t shared_bytes = 0;
  std::size_t buffer_bytes = 0;  ///< size of the buffer that the load `memory` needs
};

/// Decides how to launch the kernel of a step on the current device.
int plan_step(load load, step_kernel* plan);

/// Enqueues a step on the stream `on`. The step reads one token per row and takes `nanoseconds`, at
/// most 1 s. It ends even if the device's clock stands still.
///
/// @param buffer  `plan.buffer_bytes` bytes of device memory
/// @param sum     an int64 on the device, which receives the sum of the tokens read
int run_step(const step_kernel& plan, void* buffer, const std::int64_t* tokens, std::int64_t rows,
             std::int64_t seq_len, std::int64_t* sum, std::int64_t nanoseconds, CUstream_st* on);

/// Enqueues a kernel that does nothing.
int run_nothing(CUstream_st* on);

}  // namespace millrace::bench
