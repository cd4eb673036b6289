// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>
#include <unistd.h>

#include <memory>
#include <string>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/io/cufile_abi.hpp>
#include <millrace/loader/detail/io/io_options.hpp>

namespace millrace::loader {

/// A library that is loaded at run time, or the reason why it cannot be loaded. A library stays
/// loaded until the process ends, because both NVIDIA libraries leave threads running.
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

  /// The library's function with this name; null if there is no such function.
  template <class Function>
  Function find(const char* name) const noexcept {
    return handle_ == nullptr ? nullptr
                              : reinterpret_cast<Function>(::dlsym(handle_, name));  // NOLINT
  }

 private:
  void* handle_;
  std::string why_;
};

/// Whether the process can use a GPU, according to the driver.
struct gpu_probe {
  bool usable = false;
  std::string why;  ///< never empty
};
MILLRACE_EXPORT gpu_probe probe_gpu(const std::string& driver = "libcuda.so.1");

/// The cuFile functions that we call. Loading them does not start cuFile.
struct cufile_functions {
  bool complete = false;
  std::string why;  ///< the library's version, or what is missing; never empty
  cufile_abi::driver_open open = nullptr;
  cufile_abi::driver_close close = nullptr;
  cufile_abi::get_properties properties = nullptr;
  cufile_abi::register_handle add = nullptr;
  cufile_abi::deregister_handle remove = nullptr;
  cufile_abi::read read = nullptr;
};
MILLRACE_EXPORT cufile_functions load_cufile(const std::string& library = "libcufile.so.0");

/// A started cuFile instance, or the reason why cuFile cannot be used here.
///
/// The constructor checks the driver, a device, the library and /run/udev, and only then starts
/// cuFile. This order is necessary: without a driver, the start of cuFile 1.20 never returns, and
/// writes a log into the working directory. We change no settings of cuFile; users set them through
/// `CUFILE_ENV_PATH_JSON`. An instance must not be used in a child process after fork().
class MILLRACE_EXPORT cufile {
 public:
  /// The instance that the process shares. The first call starts the instance; it is closed when
  /// its last user releases it.
  static std::shared_ptr<const cufile> of_process(const cufile_names& names = {});

  explicit cufile(const cufile_names& names);
  cufile(const cufile&) = delete;
  cufile& operator=(const cufile&) = delete;
  ~cufile() {
    if (usable_) (void)functions_.close();
  }

  bool usable() const noexcept { return usable_; }
  /// True if data moves directly between disk and GPU. Otherwise cuFile is in its compatibility
  /// mode: it reads into host memory and copies from there, which a program can also do without
  /// cuFile.
  bool direct() const noexcept { return direct_; }
  /// Why cuFile cannot be used, or which mode it is in; never empty.
  const std::string& why() const noexcept { return why_; }
  const cufile_functions& functions() const noexcept { return functions_; }

 private:
  void find_mode();

  cufile_functions functions_;
  bool usable_ = false;
  bool direct_ = false;
  std::string why_;
};

}  // namespace millrace::loader
