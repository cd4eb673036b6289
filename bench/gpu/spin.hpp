// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

struct CUstream_st;

/// Kernels that stand for a training step. All functions return a cudaError_t.
namespace millrace::bench {

/// What a simulated training step keeps busy.
enum class load : std::uint8_t {
  one_sm,   ///< one multiprocessor: nothing competes with the loader
  all_sms,  ///< all multiprocessors: no other kernel can start until the step ends
  memory,   ///< the bandwidth of the device's memory, and half of each multiprocessor
};

/// A simulated training step: how its kernel is launched.
struct step_kernel {
  bench::load load = load::one_sm;
  unsigned blocks = 1;
  std::size_t shared_bytes = 0;  ///< per block, so that no other block fits beside it
  std::size_t buffer_bytes = 0;  ///< for `memory`: the size of the buffer that it needs
};

/// Plans the kernel of a step for the current device.
int plan_step(load load, step_kernel* plan);

/// Runs a step on the stream `on`: it reads one token per row and takes `nanoseconds`, at most 1 s.
/// A clock that stands still ends it, too.
///
/// @param buffer  plan.buffer_bytes of device memory
/// @param sum     an int64 on the device
int run_step(const step_kernel& plan, void* buffer, const std::int64_t* tokens, std::int64_t rows,
             std::int64_t seq_len, std::int64_t* sum, std::int64_t nanoseconds, CUstream_st* on);

/// Runs a kernel that does nothing.
int run_nothing(CUstream_st* on);

}  // namespace millrace::bench
