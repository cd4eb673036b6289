// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include <millrace/loader/io/cufile_abi.hpp>
#include <millrace/loader/io/io_options.hpp>

namespace millrace::loader {

/// A library that was loaded at run time, or why it was not. It stays loaded until the process
/// ends: both of NVIDIA's leave threads behind.
class loaded_library {
 public:
  explicit loaded_library(const std::string& name)
      : handle_(::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) {
      const char* const said = ::dlerror();
      why_ = said != nullptr ? said : name + " cannot be loaded";
    }
  }

  bool loaded() const noexcept { return handle_ != nullptr; }
  const std::string& why() const noexcept { return why_; }

  /// The function of that name, null where there is none.
  template <class Function>
  Function find(const char* name) const noexcept {
    return handle_ == nullptr ? nullptr
                              : reinterpret_cast<Function>(::dlsym(handle_, name));  // NOLINT
  }

 private:
  void* handle_;
  std::string why_;
};

/// Whether there is a GPU that a process may use, asked of the driver itself.
struct gpu_probe {
  bool usable = false;
  std::string why;  ///< never empty
};
gpu_probe probe_gpu(const std::string& driver = "libcuda.so.1");

/// The functions of cuFile that we call; loaded, but not started.
struct cufile_functions {
  bool complete = false;
  std::string why;  ///< the version, or what is missing; never empty
  cufile_abi::driver_open open = nullptr;
  cufile_abi::driver_close close = nullptr;
  cufile_abi::get_properties properties = nullptr;
  cufile_abi::register_handle add = nullptr;
  cufile_abi::deregister_handle remove = nullptr;
  cufile_abi::read read = nullptr;
};
cufile_functions load_cufile(const std::string& library = "libcufile.so.0");

/// cuFile, started; or why it cannot be used here.
///
/// It is asked for in an order that does no harm: driver, device, library, /run/udev, and only then
/// its start. For started without a driver, version 1.20 never returns, and it writes a log into
/// the working directory. We change none of its settings; users do, by CUFILE_ENV_PATH_JSON. Not to
/// be used in a child after fork().
class cufile {
 public:
  /// The one of the process: started by the first call, ended when the last user lets go of it.
  static std::shared_ptr<const cufile> of_process(const cufile_names& names = {});

  explicit cufile(const cufile_names& names);
  cufile(const cufile&) = delete;
  cufile& operator=(const cufile&) = delete;
  ~cufile() {
    if (usable_) (void)functions_.close();
  }

  bool usable() const noexcept { return usable_; }
  /// Whether data goes between disk and GPU directly. If not, cuFile calls it compatibility mode:
  /// it reads into host memory and copies, as anybody can.
  bool direct() const noexcept { return direct_; }
  /// Why it cannot be used, or how it is; never empty.
  const std::string& why() const noexcept { return why_; }
  const cufile_functions& functions() const noexcept { return functions_; }

 private:
  void find_mode();

  cufile_functions functions_;
  bool usable_ = false;
  bool direct_ = false;
  std::string why_;
};

// ---------------------------------------------------------------------------------------------

inline gpu_probe probe_gpu(const std::string& driver) {
  const loaded_library library(driver);
  if (!library.loaded()) return {false, "no driver of NVIDIA's: " + library.why()};
  const auto init = library.find<cufile_abi::init>("cuInit");
  const auto count = library.find<cufile_abi::device_count>("cuDeviceGetCount");
  if (init == nullptr || count == nullptr) return {false, driver + " is no CUDA driver"};
  if (const int code = init(0); code != 0) {
    return {false,
            "cuInit says error " + std::to_string(code) + (code == 100 ? ", no device" : "")};
  }
  int devices = 0;
  if (const int code = count(&devices); code != 0 || devices < 1) {
    return {false, "cuDeviceGetCount says " + std::to_string(devices) + " devices, error " +
                       std::to_string(code)};
  }
  return {true, std::to_string(devices) + " devices"};
}

inline cufile_functions load_cufile(const std::string& library) {
  const loaded_library loaded(library);
  cufile_functions f;
  if (!loaded.loaded()) {
    f.why = loaded.why();
    return f;
  }
  const auto find = [&]<class Function>(Function& to, const char* name) {
    to = loaded.find<Function>(name);
    if (to == nullptr) f.why += (f.why.empty() ? library + " has no " : ", ") + std::string(name);
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

inline cufile::cufile(const cufile_names& names) {
  if (const gpu_probe gpu = probe_gpu(names.driver); !gpu.usable) {
    why_ = gpu.why;
    return;
  }
  functions_ = load_cufile(names.cufile);
  why_ = functions_.why;
  if (!functions_.complete) return;
  if (::access(names.udev.c_str(), R_OK) != 0) {
    why_ += ": " + names.udev + " cannot be read, by which it would find disks";
    return;
  }
  if (const cufile_abi::error e = functions_.open(); e.code != 0) {
    why_ += ": cuFileDriverOpen says error " + std::to_string(e.code) +
            (e.cuda != 0 ? ", CUDA " + std::to_string(e.cuda) : "");
    return;
  }
  usable_ = true;
  try {
    find_mode();
  } catch (...) {  // the destructor is not run
    (void)functions_.close();
    throw;
  }
}

inline void cufile::find_mode() {
  cufile_abi::properties_with_room found{};
  if (const cufile_abi::error e = functions_.properties(&found.properties); e.code != 0) {
    why_ += ", which does not tell its mode (error " + std::to_string(e.code) + ")";
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

inline std::shared_ptr<const cufile> cufile::of_process(const cufile_names& names) {
  static std::mutex mutex;
  static std::map<cufile_names, std::weak_ptr<const cufile>> shared;
  const std::lock_guard lock(mutex);
  auto one = shared[names].lock();
  if (!one) shared[names] = one = std::make_shared<const cufile>(names);
  return one;
}

}  // namespace millrace::loader
