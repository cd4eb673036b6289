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
MILLRACE_EXPORT gpu_probe probe_gpu(const std::string& driver = "libcuda.so.1");

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
MILLRACE_EXPORT cufile_functions load_cufile(const std::string& library = "libcufile.so.0");

/// cuFile, started; or why it cannot be used here.
///
/// It is asked for in an order that does no harm: driver, device, library, /run/udev, and only then
/// its start. For started without a driver, version 1.20 never returns, and it writes a log into
/// the working directory. We change none of its settings; users do, by CUFILE_ENV_PATH_JSON. Not to
/// be used in a child after fork().
class MILLRACE_EXPORT cufile {
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

}  // namespace millrace::loader
