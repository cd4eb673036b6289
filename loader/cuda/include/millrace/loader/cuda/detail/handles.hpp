// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <millrace/io/detail/unique_handle.hpp>
#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/detail/cuda_error.hpp>

/// Owners of CUDA runtime resources, and settings of the calling thread. An owner does not wait for
/// operations that still use its resource. Code that destroys an owner must first ensure that no
/// such operations are left.
namespace millrace::loader::cuda {

namespace detail {

/// A resource and the runtime that it belongs to. `Close` is the runtime call that frees the
/// resource.
template <class T, auto Close>
struct of_runtime {
  const cuda_api* api = nullptr;
  T value = nullptr;
  bool operator==(const of_runtime&) const = default;

  // No caller is left to receive the error, so it is only cleared in the runtime.
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

/// Makes an event without timing, for other streams to wait for.
inline owned_event make_event(const cuda_api& api) {
  event made = nullptr;
  check(api, api.create_event(&made, event_disable_timing), "cudaEventCreateWithFlags");
  return owned_event({&api, made});
}

/// Makes an event without timing, for which a host thread can also wait asleep. The device sends an
/// interrupt when the event completes, which takes the stream 2 to 3 us longer.
inline owned_event make_host_event(const cuda_api& api) {
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

/// Makes `device` the calling thread's current device. The destructor restores the previous current
/// device, or none if the thread had none. This class creates a CUDA context on `device` only. With
/// `cudaSetDevice`, restoring the previous device would create a context there too. If the thread
/// never chose a device, that would be the first device.
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

/// Lets the calling thread allocate, free and wait while another thread captures a CUDA graph
/// (`cudaStreamBeginCapture` in its default mode). Without this object, CUDA forbids these calls:
/// they would fail, and would invalidate the other thread's capture. The destructor restores the
/// thread's previous mode.
///
/// @pre the process already uses the thread's current device, because CUDA may create a context
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
  int mode_ = 2;  // 2 is relaxed; the constructor replaces it by the thread's previous mode
};

/// True if `which` is being captured into a CUDA graph. Also true if `which` is the default stream
/// and cannot be used now, because another stream is being captured.
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
