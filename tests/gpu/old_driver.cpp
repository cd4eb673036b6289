// SPDX-License-Identifier: Apache-2.0
//
// Imitates a CUDA driver of 2021. The library is named libcuda.so.1, and tests put its folder into
// LD_LIBRARY_PATH, so that the CUDA runtime loads it.

// NOLINTBEGIN(readability-identifier-naming): the driver's own names
extern "C" {

__attribute__((visibility("default"))) int cuInit(unsigned /*flags*/) {
  return 0;
}

__attribute__((visibility("default"))) int cuDriverGetVersion(int* version) {
  *version = 11040;
  return 0;
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)
