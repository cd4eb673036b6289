// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

namespace millrace::test {

/// Returns the function `name` of the CUDA driver, or null if there is none. The test programs do
/// not link to the driver's library, so that they also start on machines without a driver.
template <class Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  constexpr unsigned version = 12000;
  if (cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result) != 0) {
    (void)cudaGetLastError();
    return nullptr;
  }
  return reinterpret_cast<Function>(found);
}

}  // namespace millrace::test
