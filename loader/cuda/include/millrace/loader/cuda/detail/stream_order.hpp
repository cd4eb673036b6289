// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/detail/cuda_error.hpp>

/// The four operations that order work. Nothing else in the loader orders work, so a test can leave
/// out each of them in turn.
namespace millrace::loader::cuda {

/// Records `which` on `behind`: it completes when all work now on `behind` is done.
/// @throws cuda_error  the runtime call failed; the same for all functions here
inline void record(const cuda_api& api, event which, stream behind) {
  check(api, api.record_event(which, behind), "cudaEventRecord");
}

/// Work submitted to `waits` from now on starts after `which`, as recorded last, has completed.
inline void wait(const cuda_api& api, stream waits, event which) {
  check(api, api.wait_event(waits, which), "cudaStreamWaitEvent");
}

/// The calling thread sleeps until `which`, as recorded last, has completed.
inline void wait_on_host(const cuda_api& api, event which) {
  check(api, api.synchronize_event(which), "cudaEventSynchronize");
}

/// The calling thread sleeps until all work on `which` is done.
inline void drain(const cuda_api& api, stream which) {
  check(api, api.synchronize_stream(which), "cudaStreamSynchronize");
}

}  // namespace millrace::loader::cuda
