// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/detail/cuda_error.hpp>

/// The five functions that order CUDA operations. The loader orders them nowhere else, so a test
/// can leave out each call of these functions in turn.
namespace millrace::loader::cuda {

/// Records the event `which` on the stream `behind`. The event completes when all operations
/// submitted to `behind` so far are done.
/// @throws cuda_error  the runtime call failed; the same for all functions here
inline void record(const cuda_api& api, event which, stream behind) {
  check(api, api.record_event(which, behind), "cudaEventRecord");
}

/// Operations submitted to `waits` after this call start when the last recording of `which` has
/// completed.
inline void wait(const cuda_api& api, stream waits, event which) {
  check(api, api.wait_event(waits, which), "cudaStreamWaitEvent");
}

/// Puts the calling thread to sleep until the last recording of `which` has completed.
inline void wait_on_host(const cuda_api& api, event which) {
  check(api, api.synchronize_event(which), "cudaEventSynchronize");
}

/// True if the last recording of `which` has completed. The result true guarantees the same as a
/// return from `wait_on_host`.
inline bool is_done(const cuda_api& api, event which) {
  constexpr int not_ready = 600;  // cudaErrorNotReady
  const int code = api.query_event(which);
  if (code == not_ready) {
    (void)api.last_error();
    return false;
  }
  check(api, code, "cudaEventQuery");
  return true;
}

/// Waits until all operations on the stream `which` are done. CUDA decides whether the calling
/// thread sleeps or spins.
inline void drain(const cuda_api& api, stream which) {
  check(api, api.synchronize_stream(which), "cudaStreamSynchronize");
}

}  // namespace millrace::loader::cuda
