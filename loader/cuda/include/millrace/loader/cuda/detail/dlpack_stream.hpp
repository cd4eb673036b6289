// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <millrace/error.hpp>
#include <millrace/loader/cuda/device_batch.hpp>

namespace millrace::loader::cuda {

/// Makes the tensors of a batch usable on the stream that a consumer passes to
/// `__dlpack__(stream=...)`, as Python's array API standard defines it for CUDA. Operations that
/// the consumer submits to that stream see filled arrays, and the batch's memory is refilled only
/// after these operations. On the host path this function does nothing.
///
/// @param given  none or 1: the default stream; -1: the consumer orders its operations itself; any
///               other value: a `cudaStream_t`
/// @throws config_error  `given` is 0, which the standard forbids; or it is 2, the default stream
///                       of the calling thread, which cannot be supported, because a tensor may be
///                       deleted on another thread; or the stream is being captured
/// @throws cuda_error    a runtime call failed
inline void order_for_dlpack(const device_batch& batch, std::optional<std::int64_t> given) {
  if (!batch.on_device() || given == -1) return;
  const std::int64_t handle = given.value_or(1);
  if (handle < 1) {
    throw config_error("the stream of __dlpack__ is " + std::to_string(handle) +
                       ", expected none, -1, 1 (the default stream), or a stream's address");
  }
  // NOLINTNEXTLINE(performance-no-int-to-ptr): that is how the standard passes a stream
  const auto on = handle == 1 ? nullptr : reinterpret_cast<cuda::stream>(handle);
  batch.also_used_on(on);
  batch.wait_on(on);
}

}  // namespace millrace::loader::cuda
