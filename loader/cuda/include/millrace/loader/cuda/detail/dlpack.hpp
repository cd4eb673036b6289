// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

/// DLPack's structures, with the layout of its published ABI (dmlc/dlpack,
/// include/dlpack/dlpack.h): the structures of version 1.1, and the older structure without a
/// version. They are defined here so that nobody has to install DLPack. Pointers to them may be
/// cast to DLPack's types.
namespace millrace::loader::cuda::dlpack {

/// DLDevice. `type`: 1 is host memory (kDLCPU), 2 is the memory of a CUDA device (kDLCUDA).
struct device {
  std::int32_t type;
  std::int32_t id;
};
inline constexpr std::int32_t on_cpu = 1;
inline constexpr std::int32_t on_cuda = 2;

/// DLDataType. `code`: 0 is signed integers, 2 is floats.
struct data_type {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

/// DLTensor. `strides` are in elements.
struct tensor {
  void* data;
  dlpack::device device;
  std::int32_t ndim;
  data_type dtype;
  std::int64_t* shape;
  std::int64_t* strides;
  std::uint64_t byte_offset;
};

/// DLManagedTensor: a capsule named "dltensor" holds one.
struct managed_tensor {
  dlpack::tensor tensor;
  void* manager;
  void (*deleter)(managed_tensor* self);
};

/// DLPackVersion.
struct version {
  std::uint32_t major;
  std::uint32_t minor;
};
inline constexpr version published = {1, 1};

/// DLManagedTensorVersioned: a capsule named "dltensor_versioned" holds one.
struct versioned_tensor {
  dlpack::version version;
  void* manager;
  void (*deleter)(versioned_tensor* self);
  std::uint64_t flags;
  dlpack::tensor tensor;
};

static_assert(sizeof(tensor) == 48 && offsetof(tensor, shape) == 24);
static_assert(sizeof(managed_tensor) == 64 && offsetof(managed_tensor, deleter) == 56);
static_assert(sizeof(versioned_tensor) == 80 && offsetof(versioned_tensor, tensor) == 32);

}  // namespace millrace::loader::cuda::dlpack
