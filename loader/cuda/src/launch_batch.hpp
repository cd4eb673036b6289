// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/loader/cuda/detail/array_copies.hpp>
#include <millrace/loader/cuda/detail/batch_work.hpp>
#include <millrace/loader/cuda/detail/cuda_api.hpp>

namespace millrace::loader::cuda {

/// Launches the kernels of a batch on a stream of the current device. Returns the launch's
/// cudaError_t; the same for all functions here.
int launch_batch(const batch_work& work, stream on);
int launch_copies(const array_copies& copies, stream on);

/// Looks for each variant of the kernels. Returns the cudaError_t of the first that the current
/// device cannot run, or 0.
int find_kernels();

}  // namespace millrace::loader::cuda
