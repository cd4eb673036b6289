// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <millrace/error.hpp>
#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/detail/cuda_error.hpp>

namespace millrace::loader::cuda {

/// The result of looking for a device. `why` is a clause: the device, or the reason why it cannot
/// be used.
struct device_answer {
  bool usable = false;
  int code = 0;  ///< the cudaError_t that made it unusable, or 0
  std::string why;
};

/// Looks for a device. If there is none, that is a result, not an error: this build has no CUDA,
/// the driver is missing or too old (codes 35 and 3), there is no device (100), or the driver does
/// not support the device (804).
///
/// @param api     null: a build without CUDA
/// @param device  index of the device, from 0
/// @throws config_error  there are devices, but not this one
/// @throws cuda_error    the driver or the device is broken
inline device_answer find_device(const cuda_api* api, int device) {
  if (api == nullptr) return {false, 0, "this build is without CUDA"};
  int count = 0;
  const int code = api->device_count(&count);
  if (code == 35 || code == 100 || code == 3 || code == 804) {
    const cuda_error said = taken_error(*api, code, "cudaGetDeviceCount");
    return {false, code, said.what()};
  }
  check(*api, code, "cudaGetDeviceCount");
  if (count == 0) return {false, 0, "cudaGetDeviceCount: there is no device"};
  if (device < 0 || device >= count) {
    throw config_error("device is " + std::to_string(device) + ", expected 0 to " +
                       std::to_string(count - 1) + ", the devices that this process sees");
  }
  return {true, 0, "device " + std::to_string(device) + " of " + std::to_string(count)};
}

}  // namespace millrace::loader::cuda
