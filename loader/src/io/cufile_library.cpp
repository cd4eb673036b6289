// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/cufile_library.hpp>

#include <dlfcn.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include <millrace/loader/detail/io/cufile_abi.hpp>
#include <millrace/loader/detail/io/io_options.hpp>

namespace millrace::loader {

MILLRACE_INLINE gpu_probe probe_gpu(const std::string& driver) {
  const loaded_library library(driver);
  if (!library.loaded()) return {false, "the CUDA driver cannot be loaded: " + library.why()};
  const auto init = library.find<cufile_abi::init>("cuInit");
  const auto count = library.find<cufile_abi::device_count>("cuDeviceGetCount");
  if (init == nullptr || count == nullptr) return {false, driver + " is not a CUDA driver"};
  if (const int code = init(0); code != 0) {
    return {false,
            "cuInit returned error " + std::to_string(code) + (code == 100 ? " (no device)" : "")};
  }
  int devices = 0;
  if (const int code = count(&devices); code != 0 || devices < 1) {
    return {false, "cuDeviceGetCount returned " + std::to_string(devices) + " devices and error " +
                       std::to_string(code)};
  }
  return {true, std::to_string(devices) + " devices"};
}

MILLRACE_INLINE cufile_functions load_cufile(const std::string& library) {
  const loaded_library loaded(library);
  cufile_functions f;
  if (!loaded.loaded()) {
    f.why = loaded.why();
    return f;
  }
  const auto find = [&]<class Function>(Function& to, const char* name) {
    to = loaded.find<Function>(name);
    if (to == nullptr) f.why += (f.why.empty() ? library + " lacks " : ", ") + std::string(name);
  };
  find(f.open, "cuFileDriverOpen");
  f.close = loaded.find<cufile_abi::driver_close>("cuFileDriverClose_v2");
  if (f.close == nullptr) find(f.close, "cuFileDriverClose");
  find(f.properties, "cuFileDriverGetProperties");
  find(f.add, "cuFileHandleRegister");
  find(f.remove, "cuFileHandleDeregister");
  find(f.read, "cuFileRead");
  f.complete = f.why.empty();
  if (!f.complete) return f;
  int version = 0;
  const auto get_version = loaded.find<cufile_abi::get_version>("cuFileGetVersion");
  if (get_version == nullptr || get_version(&version).code != 0) {
    f.why = library + " before version 1.8";
  } else {
    f.why = library + " version " + std::to_string(version / 1000) + "." +
            std::to_string(version % 1000 / 10);
  }
  return f;
}

MILLRACE_INLINE cufile::cufile(const cufile_names& names) {
  if (const gpu_probe gpu = probe_gpu(names.driver); !gpu.usable) {
    why_ = gpu.why;
    return;
  }
  functions_ = load_cufile(names.cufile);
  why_ = functions_.why;
  if (!functions_.complete) return;
  if (::access(names.udev.c_str(), R_OK) != 0) {
    why_ += ": " + names.udev + " cannot be read, but cuFile needs it to find disks";
    return;
  }
  if (const cufile_abi::error e = functions_.open(); e.code != 0) {
    why_ += ": cuFileDriverOpen returned error " + std::to_string(e.code) +
            (e.cuda != 0 ? ", CUDA " + std::to_string(e.cuda) : "");
    return;
  }
  usable_ = true;
  try {
    find_mode();
  } catch (...) {  // the destructor does not run if the constructor throws
    (void)functions_.close();
    throw;
  }
}

MILLRACE_INLINE void cufile::find_mode() {
  cufile_abi::properties_with_room found{};
  if (const cufile_abi::error e = functions_.properties(&found.properties); e.code != 0) {
    why_ += " in an unknown mode (cuFileDriverGetProperties returned error " +
            std::to_string(e.code) + ")";
    return;
  }
  const bool module =
      found.properties.kernel_module.major != 0 || found.properties.kernel_module.minor != 0;
  const bool p2p = (found.properties.features & cufile_abi::has_p2p) != 0;
  direct_ = module || p2p;
  why_ += module ? ", with nvidia-fs"
          : p2p  ? ", with P2PDMA"
                 : ", in compatibility mode: no nvidia-fs, no P2PDMA";
}

MILLRACE_INLINE std::shared_ptr<const cufile> cufile::of_process(const cufile_names& names) {
  static std::mutex mutex;
  static std::map<cufile_names, std::weak_ptr<const cufile>> shared;
  const std::lock_guard lock(mutex);
  auto one = shared[names].lock();
  if (!one) shared[names] = one = std::make_shared<const cufile>(names);
  return one;
}

}  // namespace millrace::loader
