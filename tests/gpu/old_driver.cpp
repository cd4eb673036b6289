// SPDX-License-Identifier: Apache-2.0
//
// Looks to the CUDA runtime like a driver of 2021. Its library is named libcuda.so.1; tests put its
// folder into LD_LIBRARY_PATH.

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
