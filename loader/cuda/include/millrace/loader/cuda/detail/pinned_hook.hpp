// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <string>

#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/detail/handles.hpp>
#include <millrace/loader/detail/memory/memory_kind.hpp>

namespace millrace::loader::cuda {

namespace detail {

/// The device of a hook. A pointer to this struct is passed to the hook as its `context`.
struct pinned_place {
  const cuda_api* api;
  int device;
};

/// Returns the hook's context for a device. The context lives until the process ends, because the
/// hook's memory may live that long.
inline pinned_place* kept_place(const cuda_api& api, int device) {
  static std::mutex mutex;
  static auto& places = *new std::deque<pinned_place>;  // its elements never move
  const std::scoped_lock lock(mutex);
  for (pinned_place& place : places) {
    if (place.api == &api && place.device == device) return &place;
  }
  return &places.emplace_back(pinned_place{&api, device});
}

/// Sets `why` to `text`. A hook must not throw, so without memory for the text, the reason is that
/// there is no memory.
inline void set_reason(std::string& why, const char* text) noexcept {
  try {
    why = text;
  } catch (...) {
    why = "no memory";  // short enough to need no allocation
  }
}

}  // namespace detail

/// Provides the CUDA runtime's page-locked memory to `pinned_pool`, which does not depend on CUDA.
///
/// Every device can copy from and to this memory. But to allocate it, the runtime creates a CUDA
/// context on the calling thread's current device, which takes hundreds of megabytes there. The
/// hook therefore makes `device` current first. Otherwise every rank of a machine would have a CUDA
/// context on the first device.
///
/// @param api     null in a build without CUDA; the hook is then empty
/// @param device  a device that the process uses anyway
inline pinned_memory_hook pinned_hook(const cuda_api* api, int device) {
  if (api == nullptr) return {};
  return {detail::kept_place(*api, device),
          [](void* context, std::size_t size_bytes, std::string& why) -> void* {
            const auto& place = *static_cast<const detail::pinned_place*>(context);
            try {
              const device_scope scope(*place.api, place.device);
              const outside_captures unforbidden(*place.api);
              return allocate_pinned(*place.api, size_bytes).release().value;
            } catch (const std::exception& refused) {
              detail::set_reason(why, refused.what());
              return nullptr;
            }
          },
          [](void* context, void* memory) {
            const auto& place = *static_cast<const detail::pinned_place*>(context);
            pinned_block ended({place.api, memory});
            try {
              const device_scope scope(*place.api, place.device);
              const outside_captures unforbidden(*place.api);
              ended.reset();
            } catch (...) {  // NOLINT(bugprone-empty-catch): the destructor of `ended` frees it
            }
          }};
}

}  // namespace millrace::loader::cuda
