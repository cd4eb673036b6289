// SPDX-License-Identifier: Apache-2.0
#include "launch_batch.hpp"

#include <cuda_runtime_api.h>

#include <type_traits>

#include <millrace/loader/cuda/detail/cuda_api.hpp>

namespace millrace::loader::cuda {

static_assert(std::is_same_v<stream, cudaStream_t> && std::is_same_v<event, cudaEvent_t>);
static_assert(cudaStreamCaptureStatusNone == 0 && cudaStreamCaptureModeRelaxed == 2);

namespace {

constexpr cuda_api runtime = {
    .device_count = [](int* count) -> int { return cudaGetDeviceCount(count); },
    .current_device = [](int* device) -> int { return cudaGetDevice(device); },
    .use_device = [](int device) -> int { return cudaSetDevice(device); },
    .pci_bus_id = [](char* text, int size, int device) -> int {
      return cudaDeviceGetPCIBusId(text, size, device);
    },
    .allocate = [](void** memory, std::size_t bytes) -> int { return cudaMalloc(memory, bytes); },
    .free = [](void* memory) -> int { return cudaFree(memory); },
    .allocate_pinned = [](void** memory, std::size_t bytes) -> int {
      return cudaHostAlloc(memory, bytes, cudaHostAllocPortable);
    },
    .free_pinned = [](void* memory) -> int { return cudaFreeHost(memory); },
    .create_stream = [](stream* made) -> int {
      return cudaStreamCreateWithFlags(made, cudaStreamNonBlocking);
    },
    .destroy_stream = [](stream which) -> int { return cudaStreamDestroy(which); },
    .synchronize_stream = [](stream which) -> int { return cudaStreamSynchronize(which); },
    .capture_status = [](stream which, int* status) -> int {
      cudaStreamCaptureStatus found = cudaStreamCaptureStatusNone;
      const int code = cudaStreamIsCapturing(which, &found);
      *status = found;
      return code;
    },
    .exchange_capture_mode = [](int* mode) -> int {
      auto exchanged = static_cast<cudaStreamCaptureMode>(*mode);
      const int code = cudaThreadExchangeStreamCaptureMode(&exchanged);
      *mode = exchanged;
      return code;
    },
    .create_event = [](event* made) -> int {
      return cudaEventCreateWithFlags(made, cudaEventDisableTiming | cudaEventBlockingSync);
    },
    .destroy_event = [](event which) -> int { return cudaEventDestroy(which); },
    .record_event = [](event which, stream behind) -> int {
      return cudaEventRecord(which, behind);
    },
    .synchronize_event = [](event which) -> int { return cudaEventSynchronize(which); },
    .wait_event = [](stream waits, event which) -> int {
      return cudaStreamWaitEvent(waits, which, 0);
    },
    .copy_to_device = [](void* to, const void* from, std::size_t bytes, stream on) -> int {
      return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, on);
    },
    .copy_to_host = [](void* to, const void* from, std::size_t bytes, stream on) -> int {
      return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, on);
    },
    .launch_batch = launch_batch,
    .last_error = []() -> int { return cudaGetLastError(); },
    .error_name = [](int code) { return cudaGetErrorName(static_cast<cudaError_t>(code)); },
    .error_text = [](int code) { return cudaGetErrorString(static_cast<cudaError_t>(code)); },
};

}  // namespace

const cuda_api* runtime_api() noexcept {
  return &runtime;
}

const char* runtime_version() noexcept {
  return MILLRACE_CUDA_VERSION;
}

}  // namespace millrace::loader::cuda
