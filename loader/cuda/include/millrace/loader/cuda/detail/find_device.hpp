// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdlib>
#include <string>

#include <millrace/error.hpp>
#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/detail/cuda_error.hpp>

namespace millrace::loader::cuda {

/// What to do if the process sees no CUDA device.
enum class no_device_rule : std::uint8_t {
  error,  ///< throw, so that no training run uses pointers to host memory by accident
  host,   ///< make the same batches in host memory
};

/// The result of looking for a device. `why` is a clause that names the device or says why there is
/// none.
struct device_answer {
  bool usable = false;
  int code = 0;  ///< the `cudaError_t` that means that there is no device, or 0
  std::string why;
};

namespace detail {

/// Returns "12.4" for 12040, the runtime's form of that version.
inline std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

/// Returns the error for a driver that is too old for this program's CUDA runtime.
inline cuda_error old_driver(const cuda_api& api, const cuda_error& said, int driver) {
  const int major = api.version / 1000;
  const int oldest = major == 12 ? 525 : 580;  // the first driver of each CUDA version
  std::string text = "the driver of this machine is for CUDA " + version_text(driver) +
                     ", and this program was built with CUDA " + version_text(api.version) +
                     ": install driver " + std::to_string(oldest) + " or newer";
  if (major > 12) text += ", or build millrace with CUDA 12.8, which needs driver 525";
  return {"cudaGetDeviceCount", said.code(), said.name(), text};
}

}  // namespace detail

/// Looks for a device. It is not an error if there is none: this build may lack CUDA, the machine
/// may have no driver (code 35), or the driver may find no device (code 100). Every other failure
/// is an error, because the process may have a device that it cannot use.
///
/// @param api     null: a build without CUDA
/// @param device  index of the device, from 0
/// @throws config_error  there are devices, but none with the index `device`
/// @throws cuda_error    the driver is too old for this build or for the device, the process was
///                       forked from one that uses CUDA, or the driver or the device is broken
inline device_answer find_device(const cuda_api* api, int device) {
  if (api == nullptr) return {false, 0, "this build is without CUDA"};
  int count = 0;
  const int code = api->device_count(&count);
  if (code != 0) {
    constexpr int initialization_failed = 3, driver_missing_or_old = 35, none = 100;
    constexpr int compatibility_refused = 804;
    const cuda_error said = taken_error(*api, code, "cudaGetDeviceCount");
    int driver = 0;
    if (code == driver_missing_or_old && api->driver_version(&driver) != 0) (void)api->last_error();
    if (code == none || (code == driver_missing_or_old && driver == 0)) {
      return {false, code, said.what()};
    }
    if (code == driver_missing_or_old) throw detail::old_driver(*api, said, driver);
    if (code == initialization_failed) {
      throw cuda_error(
          "cudaGetDeviceCount", code, said.name(),
          "CUDA cannot be used in a process forked from one that uses it: start "
          "workers in new processes (in Python: multiprocessing's \"spawn\"). In other "
          "processes, the driver is broken");
    }
    if (code == compatibility_refused) {
      throw cuda_error("cudaGetDeviceCount", code, said.name(),
                       "CUDA's forward compatibility package does not support this GPU: install a "
                       "newer driver, or remove the folder `compat` of CUDA from LD_LIBRARY_PATH");
    }
    throw said;
  }
  if (count == 0) return {false, 0, "cudaGetDeviceCount: there is no device"};
  if (device < 0 || device >= count) {
    throw config_error("device is " + std::to_string(device) + ", expected 0 to " +
                       std::to_string(count - 1) + ", the devices that this process sees");
  }
  return {true, 0, "device " + std::to_string(device) + " of " + std::to_string(count)};
}

/// Looks for a device like the overload without `rule`. If there is no device, `rule` decides
/// whether that is an error.
/// @throws as the overload without `rule`
/// @throws config_error  there is no device, and `rule` is `error`
inline device_answer find_device(const cuda_api* api, int device, no_device_rule rule) {
  device_answer answer = find_device(api, device);
  if (answer.usable || rule == no_device_rule::host) return answer;
  throw config_error("there is no CUDA device (" + answer.why +
                     "): run where there is one, or set no_device to no_device_rule::host to make "
                     "the batches in host memory");
}

/// Checks that this build has kernels for the current device.
/// @throws cuda_error  the build has no such kernels, or the device is broken
inline void check_kernels(const cuda_api& api, int device) {
  constexpr int no_kernel_image = 209, unsupported_ptx = 222;
  const int code = api.find_kernels();
  if (code != no_kernel_image && code != unsupported_ptx) {
    return check(api, code, "cudaFuncGetAttributes");
  }
  const cuda_error said = taken_error(api, code, "cudaFuncGetAttributes");
  int capability = 0;
  check(api, api.compute_capability(&capability, device), "cudaDeviceGetAttribute");
  const std::string wanted = std::to_string(capability);
  throw cuda_error("cudaFuncGetAttributes", code, said.name(),
                   "device " + std::to_string(device) + " has compute capability " +
                       std::to_string(capability / 10) + "." + std::to_string(capability % 10) +
                       ", and this program has kernels for " + api.architectures +
                       ": build millrace with -DMILLRACE_CUDA_ARCHITECTURES=" + wanted);
}

}  // namespace millrace::loader::cuda
