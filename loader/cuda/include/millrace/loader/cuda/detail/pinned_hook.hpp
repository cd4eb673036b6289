// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>
#include <string>

#include <millrace/error.hpp>
#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/detail/handles.hpp>
#include <millrace/loader/detail/memory/memory_kind.hpp>

namespace millrace::loader::cuda {

namespace detail {

/// The context of a hook.
struct pinned_place {
  const cuda_api* api;
  int device;
};

/// One for each device, kept until the process ends, since memory of the hook may be.
inline pinned_place* kept_place(const cuda_api& api, int device) {
  static std::mutex mutex;
  static auto& places = *new std::deque<pinned_place>;  // whose elements stay where they are
  const std::scoped_lock lock(mutex);
  for (pinned_place& place : places) {
    if (place.api == &api && place.device == device) return &place;
  }
  return &places.emplace_back(pinned_place{&api, device});
}

}  // namespace detail

/// Page-locked memory of the CUDA runtime, for `pinned_pool`, which knows nothing of CUDA.
///
/// Every device can copy from and to it; but the runtime makes a context on the current device of
/// the thread that asks, which takes hundreds of megabytes there. So the device is made current:
/// else each rank of a machine would have one on the first.
///
/// @param api     null, in a build without CUDA: an empty hook
/// @param device  that the process uses anyway
inline pinned_memory_hook pinned_hook(const cuda_api* api, int device) {
  if (api == nullptr) return {};
  return {detail::kept_place(*api, device),
          [](void* context, std::size_t size_bytes, std::string& why) -> void* {
            const auto& place = *static_cast<const detail::pinned_place*>(context);
            try {
              const device_scope scope(*place.api, place.device);
              return allocate_pinned(*place.api, size_bytes).release().value;
            } catch (const error& refused) {
              why = refused.what();
              return nullptr;
            }
          },
          [](void* context, void* memory) {
            const auto& place = *static_cast<const detail::pinned_place*>(context);
            pinned_block ended({place.api, memory});
            try {
              const device_scope scope(*place.api, place.device);
              ended.reset();
            } catch (const error&) {  // ended all the same
            }
          }};
}

}  // namespace millrace::loader::cuda
