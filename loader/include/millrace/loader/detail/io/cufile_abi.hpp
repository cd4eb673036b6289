// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstddef>

/// What we call of NVIDIA's libcufile.so.0 and libcuda.so.1: types as their C interfaces lay them
/// out in memory, which versions 1.0 to 1.20 of cuFile agree on. Own words: neither header is
/// needed to build, nor either library to run (cuFile API reference, "cufile.h"; CUDA driver API).
namespace millrace::loader::cufile_abi {

/// A call's result: 0, or one of cuFile's codes (5001 on), and CUDA's where that is the reason.
struct error {
  int code;
  int cuda;
};

/// A file as cuFile takes it: by the descriptor (type 1), with no file system of the user's.
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
    unsigned major;  ///< both 0 where the kernel module nvidia-fs is not there
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
/// Bit of `features`: direct transfers between disk and GPU without nvidia-fs (PCI P2PDMA).
inline constexpr unsigned has_p2p = 1U << 4U;
/// Room for what later versions add to the properties.
union properties_with_room {
  driver_properties properties;
  std::byte room[1024];
};

static_assert(sizeof(descriptor) == 24 && sizeof(driver_properties) == 56);

using handle = void*;

// Of libcufile.so.0, by these names.
using get_version = error (*)(int* version);  // cuFileGetVersion, 1.8 on
using driver_open = error (*)();              // cuFileDriverOpen
using driver_close = error (*)();             // cuFileDriverClose_v2, before it cuFileDriverClose
using get_properties = error (*)(driver_properties*);     // cuFileDriverGetProperties
using register_handle = error (*)(handle*, descriptor*);  // cuFileHandleRegister
using deregister_handle = void (*)(handle);               // cuFileHandleDeregister
/// cuFileRead: bytes; -1 and errno; or another negative number, a code of cuFile.
using read = ::ssize_t (*)(handle, void* base, std::size_t bytes, ::off_t file_offset,
                           ::off_t base_offset);

// Of libcuda.so.1.
using init = int (*)(unsigned flags);      // cuInit
using device_count = int (*)(int* count);  // cuDeviceGetCount

}  // namespace millrace::loader::cufile_abi
