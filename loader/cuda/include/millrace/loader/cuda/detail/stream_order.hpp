// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/detail/cuda_error.hpp>

/// The four ways in which one thing is made to come behind another. Nothing else of the loader
/// does, so that a test can leave out every one of them in turn.
namespace millrace::loader::cuda {

/// `which` happens when all that is on `behind` now has been done.
/// @throws cuda_error  the runtime refused; so all of these
inline void record(const cuda_api& api, event which, stream behind) {
  check(api, api.record_event(which, behind), "cudaEventRecord");
}

/// What comes on `waits` from now on begins when `which`, as recorded last, has happened.
inline void wait(const cuda_api& api, stream waits, event which) {
  check(api, api.wait_event(waits, which), "cudaStreamWaitEvent");
}

/// The calling thread sleeps until `which`, as recorded last, has happened.
inline void wait_on_host(const cuda_api& api, event which) {
  check(api, api.synchronize_event(which), "cudaEventSynchronize");
}

/// The calling thread sleeps until all that is on `which` has been done.
inline void drain(const cuda_api& api, stream which) {
  check(api, api.synchronize_stream(which), "cudaStreamSynchronize");
}

}  // namespace millrace::loader::cuda
