// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/loader/cuda/detail/batch_work.hpp>
#include <millrace/loader/cuda/detail/cuda_api.hpp>

namespace millrace::loader::cuda {

/// Launches the kernel on a stream of the current device. Returns the launch's cudaError_t.
int launch_batch(const batch_work& work, stream on);

}  // namespace millrace::loader::cuda
