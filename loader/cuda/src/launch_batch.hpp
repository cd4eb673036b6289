// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/loader/cuda/detail/batch_work.hpp>
#include <millrace/loader/cuda/detail/cuda_api.hpp>

namespace millrace::loader::cuda {

/// Launches the kernel on a stream of the current device. Returns the launch's cudaError_t.
int launch_batch(const batch_work& work, stream on);

/// Looks for each variant of the kernel. Returns the cudaError_t of the first that the current
/// device cannot run, or 0.
int find_kernels();

}  // namespace millrace::loader::cuda
