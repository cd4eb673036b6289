// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/loader/cuda/detail/array_copies.hpp>
#include <millrace/loader/cuda/detail/batch_work.hpp>
#include <millrace/loader/cuda/detail/cuda_api.hpp>

namespace millrace::loader::cuda {

/// Launches the kernels that make a batch, on a stream of the current device. Returns the
/// `cudaError_t` of the launch.
int launch_batch(const batch_work& work, stream on);
/// Launches the kernel that copies arrays, in the same way.
int launch_copies(const array_copies& copies, stream on);

/// Checks that the current device can run every variant of the kernels. Returns 0, or the
/// `cudaError_t` of the first variant that it cannot run.
int find_kernels();

}  // namespace millrace::loader::cuda
