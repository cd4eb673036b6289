// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

#include <millrace/io/detail/unique_handle.hpp>
#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/detail/cuda_error.hpp>

/// Owners of what the CUDA runtime gives. None of them waits for work that still uses it: whoever
/// lets go of one has seen to that.
namespace millrace::loader::cuda {

namespace detail {

/// A resource, and the runtime that it is of. `Close` is how that runtime ends it.
template <class T, auto Close>
struct of_runtime {
  const cuda_api* api = nullptr;
  T value = nullptr;
  bool operator==(const of_runtime&) const = default;

  // At a time when nobody can be told any more, the error is taken away at least.
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

/// @throws cuda_error  the runtime refused; so all of these
inline owned_stream make_stream(const cuda_api& api) {
  stream made = nullptr;
  check(api, api.create_stream(&made), "cudaStreamCreateWithFlags");
  return owned_stream({&api, made});
}

inline owned_event make_event(const cuda_api& api) {
  event made = nullptr;
  check(api, api.create_event(&made), "cudaEventCreateWithFlags");
  return owned_event({&api, made});
}

inline device_memory allocate_device(const cuda_api& api, std::size_t bytes) {
  void* memory = nullptr;
  check(api, api.allocate(&memory, bytes), "cudaMalloc");
  return device_memory({&api, memory});
}

inline pinned_block allocate_pinned(const cuda_api& api, std::size_t bytes) {
  void* memory = nullptr;
  check(api, api.allocate_pinned(&memory, bytes), "cudaHostAlloc");
  return pinned_block({&api, memory});
}

/// While it lives, the calling thread's current device is another; then again the one before. Does
/// nothing where that is the same: cudaSetDevice makes a context, which takes memory of a device.
class device_scope {
 public:
  device_scope(const cuda_api& api, int device) : api_(&api) {
    int before = none;
    check(api, api.current_device(&before), "cudaGetDevice");
    if (before == device) return;
    check(api, api.use_device(device), "cudaSetDevice");
    before_ = before;
  }
  device_scope(const device_scope&) = delete;
  device_scope& operator=(const device_scope&) = delete;
  ~device_scope() {
    if (before_ != none && api_->use_device(before_) != 0) (void)api_->last_error();
  }

 private:
  static constexpr int none = -1;

  const cuda_api* api_;
  int before_ = none;
};

}  // namespace millrace::loader::cuda
