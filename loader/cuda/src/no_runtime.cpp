// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/cuda/detail/cuda_api.hpp>

namespace millrace::loader::cuda {

const cuda_api* runtime_api() noexcept {
  return nullptr;
}
const char* runtime_version() noexcept {
  return "without CUDA";
}

}  // namespace millrace::loader::cuda
