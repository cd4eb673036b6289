// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include <millrace/loader/cuda/cuda_api.hpp>
#include <millrace/loader/cuda/cuda_error.hpp>
#include <millrace/loader/memory/memory_kind.hpp>

namespace millrace::loader::cuda {

/// Page-locked memory of the CUDA runtime, for `pinned_pool`, which knows nothing of CUDA.
///
/// @param api  null, in a build without CUDA: an empty hook
inline pinned_memory_hook pinned_hook(const cuda_api* api) noexcept {
  if (api == nullptr) return {};
  // The hook's context may be written to, the table is not.
  return {const_cast<cuda_api*>(api),  // NOLINT(cppcoreguidelines-pro-type-const-cast)
          [](void* context, std::size_t size_bytes, std::string& why) -> void* {
            const auto& runtime = *static_cast<const cuda_api*>(context);
            void* memory = nullptr;
            const int code = runtime.allocate_pinned(&memory, size_bytes);
            if (code == 0) return memory;
            why = taken_error(runtime, code, "cudaHostAlloc").what();
            return nullptr;
          },
          [](void* context, void* memory) {
            const auto& runtime = *static_cast<const cuda_api*>(context);
            if (runtime.free_pinned(memory) != 0) (void)runtime.last_error();
          }};
}

}  // namespace millrace::loader::cuda
