// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <iostream>

#include <millrace/loader/cuda/detail/find_device.hpp>

/// Functions with which the programs of `bench/gpu` and `tests/gpu` check that a device is usable.
namespace millrace::bench {

/// Exit statuses of these programs. A program exits with `passed` only if it used a device.
enum exit_status : int {
  passed = 0,
  failed = 1,
  misused = 2,
  incomplete = 3,
  no_device = 77,
  old_driver = 78,
};

namespace detail {

// Call this if the process sees no device. Returns whether the machine has a device nevertheless,
// and $CUDA_VISIBLE_DEVICES does not explain why it is hidden.
inline bool device_is_hidden() {
  return std::getenv("CUDA_VISIBLE_DEVICES") == nullptr && ::access("/dev/nvidia0", F_OK) == 0;
}

}  // namespace detail

/// Returns `passed` if the first device can be used. Otherwise prints the reason and returns
/// another status.
inline exit_status device_status(const char* program) {
  constexpr int driver_is_old = 35;
  try {
    const auto answer = loader::cuda::find_device(loader::cuda::runtime_api(), 0);
    if (answer.usable) return passed;
    if (detail::device_is_hidden()) {
      std::cerr << program << ": /dev/nvidia0 exists, but CUDA finds no device: " << answer.why
                << '\n';
      return failed;
    }
    std::cerr << program << ": skipped, there is no GPU here: " << answer.why << '\n';
    return no_device;
  } catch (const loader::cuda::cuda_error& e) {
    std::cerr << program << ": " << e.what() << '\n';
    return e.code() == driver_is_old ? old_driver : failed;
  } catch (const std::exception& e) {
    std::cerr << program << ": " << e.what() << '\n';
    return failed;
  }
}

/// Runs the body of a program if there is a usable device. Returns the exit status of the program.
///
/// @param body  a function without parameters that returns the exit status
template <class Body>
int run_on_device(const char* program, const Body& body) {
  if (const exit_status status = device_status(program); status != passed) return status;
  try {
    return body();
  } catch (const std::exception& e) {
    std::cerr << program << ": " << e.what() << '\n';
    return failed;
  }
}

}  // namespace millrace::bench
