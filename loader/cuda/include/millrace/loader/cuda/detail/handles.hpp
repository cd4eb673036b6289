// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <millrace/io/detail/unique_handle.hpp>
#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/detail/cuda_error.hpp>

/// Owners of CUDA runtime resources, and settings of the calling thread. No owner waits for
/// operations that still use its resource: the code that destroys an owner must ensure that there
/// are none.
namespace millrace::loader::cuda {

namespace detail {

/// A resource and the runtime it belongs to. `Close` is the runtime's call that frees it.
template <class T, auto Close>
struct of_runtime {
  const cuda_api* api = nullptr;
  T value = nullptr;
  bool operator==(const of_runtime&) const = default;

  // An error can no longer be reported here, so it is only cleared.
  static void close(const of_runtime& resource) noexcept {
    if ((resource.api->*Close)(resource.value) != 0) (void)resource.api->last_error();
  }
};

template <class T, auto Close>
using owned =
    io::unique_handle<of_runtime<T, Close>, of_runtime<T, Close>{}, of_runtime<T, Close>::close>;

}  // namespace detail

using owned_stream = detail::owned<stream, &cuda_api::destroy_stream>;
using owned_event = detail::owned<event, &cuda_api::destroy_event>;
using device_memory = detail::owned<void*, &cuda_api::free>;
using pinned_block = detail::owned<void*, &cuda_api::free_pinned>;

/// Makes a stream that does not wait for the default stream.
/// @throws cuda_error  the runtime call failed; the same for all functions here
inline owned_stream make_stream(const cuda_api& api, int priority = 0) {
  stream made = nullptr;
  check(api, api.create_stream(&made, stream_non_blocking, priority),
        "cudaStreamCreateWithPriority");
  return owned_stream({&api, made});
}

/// The highest priority of a stream on the current device.
inline int highest_priority(const cuda_api& api) {
  int lowest = 0, highest = 0;
  check(api, api.priority_range(&lowest, &highest), "cudaDeviceGetStreamPriorityRange");
  return highest;
}

/// Makes an event without timing. A host thread that waits for it sleeps.
inline owned_event make_event(const cuda_api& api) {
  event made = nullptr;
  check(api, api.create_event(&made, event_disable_timing | event_blocking_sync),
        "cudaEventCreateWithFlags");
  return owned_event({&api, made});
}

inline device_memory allocate_device(const cuda_api& api, std::size_t bytes) {
  void* memory = nullptr;
  check(api, api.allocate(&memory, bytes), "cudaMalloc");
  return device_memory({&api, memory});
}

/// Allocates page-locked memory that every device can copy from.
inline pinned_block allocate_pinned(const cuda_api& api, std::size_t bytes) {
  void* memory = nullptr;
  check(api, api.allocate_pinned(&memory, bytes, host_portable), "cudaHostAlloc");
  return pinned_block({&api, memory});
}

/// Makes `device` the calling thread's current device; the destructor restores what was current
/// before, which may be nothing. Creates a context on `device` alone. (cudaSetDevice would create
/// one on the device that it restores: on a thread that never chose a device, the first one.)
class device_scope {
 public:
  device_scope(const cuda_api& api, int device) : api_(&api) {
    check(api, api.push_device(device), "cuCtxPushCurrent");
  }
  device_scope(const device_scope&) = delete;
  device_scope& operator=(const device_scope&) = delete;
  ~device_scope() {
    if (api_->pop_device() != 0) (void)api_->last_error();
  }

 private:
  const cuda_api* api_;
};

/// Allows the calling thread calls that CUDA otherwise forbids while another thread captures a CUDA
/// graph (cudaStreamBeginCapture in its default mode): to allocate, to free and to wait. Such a
/// call would fail, and would make the other thread's capture invalid. The destructor forbids them
/// again.
///
/// @pre the thread's current device is one that the process uses, as CUDA may create a context
/// there
class outside_captures {
 public:
  explicit outside_captures(const cuda_api& api) : api_(&api) {
    check(api, api.exchange_capture_mode(&mode_), "cudaThreadExchangeStreamCaptureMode");
  }
  outside_captures(const outside_captures&) = delete;
  outside_captures& operator=(const outside_captures&) = delete;
  ~outside_captures() {
    if (api_->exchange_capture_mode(&mode_) != 0) (void)api_->last_error();
  }

 private:
  const cuda_api* api_;
  int mode_ = 2;  // relaxed; from the constructor on, the thread's own mode
};

/// Whether `which` is being captured into a CUDA graph, or is the default stream at a time when it
/// cannot be used because of another stream's capture.
/// @throws cuda_error  the runtime call failed
inline bool is_captured(const cuda_api& api, stream which) {
  constexpr int capture_implicit = 906;  // cudaErrorStreamCaptureImplicit
  int status = 0;
  const int code = api.capture_status(which, &status);
  if (code == capture_implicit) {
    (void)api.last_error();
    return true;
  }
  check(api, code, "cudaStreamIsCapturing");
  return status != 0;
}

}  // namespace millrace::loader::cuda
