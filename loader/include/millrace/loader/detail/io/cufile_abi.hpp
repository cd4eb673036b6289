// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>

/// The functions of NVIDIA's libcufile.so.0 and libcuda.so.1 that we call, and their types. The
/// memory layout of the types is that of the C interfaces, which is the same in cuFile 1.0 to 1.20.
/// We wrote these declarations ourselves, from the cuFile API reference ("cufile.h") and the CUDA
/// driver API. So the build does not need the headers of the libraries, and programs run without
/// the libraries.
namespace millrace::loader::cufile_abi {

/// Result of a call. `code` is 0, or a cuFile error code (5001 or more). If CUDA caused the error,
/// `cuda` is the CUDA error code.
struct error {
  int code;
  int cuda;
};

/// How a file is passed to cuFile. We pass a file descriptor (type 1) and no user-space file
/// system.
struct descriptor {
  int type;
  union {
    int fd;
    void* handle;
  } file;
  const void* operations;
};
inline constexpr int is_descriptor = 1;

struct driver_properties {
  struct {
    unsigned major;  ///< version; 0.0 if the kernel module nvidia-fs is absent
    unsigned minor;
    std::size_t poll_threshold;
    std::size_t most_direct_bytes;
    unsigned status;
    unsigned control;
  } kernel_module;
  unsigned features;
  unsigned most_device_cache;
  unsigned buffer_cache;
  unsigned most_pinned;
  unsigned most_batch;
  unsigned batch_timeout_ms;
};
/// Bit of `features`: data can move directly between disk and GPU without nvidia-fs (PCI P2PDMA).
inline constexpr unsigned has_p2p = 1U << 4U;
/// Has space for fields that later cuFile versions may add to the properties.
union properties_with_room {
  driver_properties properties;
  std::byte room[1024];
};

static_assert(sizeof(descriptor) == 24 && sizeof(driver_properties) == 56);

using handle = void*;

// Functions of libcufile.so.0, with their symbol names.
using get_version = error (*)(int* version);  // cuFileGetVersion, since 1.8
using driver_open = error (*)();              // cuFileDriverOpen
using driver_close = error (*)();             // cuFileDriverClose_v2, earlier cuFileDriverClose
using get_properties = error (*)(driver_properties*);     // cuFileDriverGetProperties
using register_handle = error (*)(handle*, descriptor*);  // cuFileHandleRegister
using deregister_handle = void (*)(handle);               // cuFileHandleDeregister
/// cuFileRead. Returns the number of bytes read, or a negative number on failure. After -1, errno
/// is the cause; other negative numbers are cuFile codes.
using read = ::ssize_t (*)(handle, void* base, std::size_t bytes, ::off_t file_offset,
                           ::off_t base_offset);

// Functions of libcuda.so.1.
using init = int (*)(unsigned flags);      // cuInit
using device_count = int (*)(int* count);  // cuDeviceGetCount

}  // namespace millrace::loader::cufile_abi
