// SPDX-License-Identifier: Apache-2.0
#include "launch_batch.hpp"

#include <cuda.h>
#include <cuda_runtime_api.h>

#if __has_include(<nvtx3/nvToolsExtCudaRt.h>)
#define MILLRACE_HAS_NVTX 1
#include <nvtx3/nvToolsExt.h>
#include <nvtx3/nvToolsExtCudaRt.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include <cstdint>
#include <map>
#include <mutex>
#include <type_traits>

#include <millrace/loader/cuda/detail/cuda_api.hpp>

namespace millrace::loader::cuda {

static_assert(std::is_same_v<stream, cudaStream_t> && std::is_same_v<event, cudaEvent_t>);
static_assert(cudaStreamCaptureStatusNone == 0 && cudaStreamCaptureModeRelaxed == 2);
static_assert(stream_non_blocking == cudaStreamNonBlocking);
static_assert(event_blocking_sync == cudaEventBlockingSync);
static_assert(event_disable_timing == cudaEventDisableTiming);
static_assert(host_portable == cudaHostAllocPortable);
static_assert(cudaErrorNotReady == 600);

namespace {

// Returns the driver's function of this name, or null. This library does not link to the driver;
// the runtime loads it.
template <class Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult result = cudaDriverEntryPointSymbolNotFound;
  constexpr unsigned version = 12000;  // the signatures used here are those of CUDA 12.0
  if (cudaGetDriverEntryPointByVersion(name, &found, version, cudaEnableDefault, &result) != 0) {
    return nullptr;
  }
  return reinterpret_cast<Function>(found);
}

// Returns the runtime's error code for a driver error. Both use the same numbers.
int runtime_code(CUresult code) {
  return static_cast<int>(code);
}

// Retains the device's primary context until the process ends, as `cudaSetDevice` does.
int retained_context(int device, CUcontext* context) {
  static std::mutex mutex;
  static auto& contexts = *new std::map<int, CUcontext>;
  const std::scoped_lock lock(mutex);
  if (const auto found = contexts.find(device); found != contexts.end()) {
    *context = found->second;
    return 0;
  }
  static const auto get = driver_function<CUresult (*)(CUdevice*, int)>("cuDeviceGet");
  static const auto retain =
      driver_function<CUresult (*)(CUcontext*, CUdevice)>("cuDevicePrimaryCtxRetain");
  if (get == nullptr || retain == nullptr) return cudaErrorInsufficientDriver;
  CUdevice handle = 0;
  CUresult code = get(&handle, device);
  if (code == CUDA_SUCCESS) code = retain(context, handle);
  if (code == CUDA_SUCCESS) contexts[device] = *context;
  return runtime_code(code);
}

int push_device(int device) {
  int count = 0;
  if (const int code = cudaGetDeviceCount(&count); code != 0) return code;  // loads the driver
  CUcontext context = nullptr;
  if (const int code = retained_context(device, &context); code != 0) return code;
  static const auto push = driver_function<CUresult (*)(CUcontext)>("cuCtxPushCurrent");
  return push != nullptr ? runtime_code(push(context)) : int{cudaErrorInsufficientDriver};
}

int pop_device() {
  static const auto pop = driver_function<CUresult (*)(CUcontext*)>("cuCtxPopCurrent");
  CUcontext popped = nullptr;
  return pop != nullptr ? runtime_code(pop(&popped)) : int{cudaErrorInsufficientDriver};
}

#if MILLRACE_HAS_NVTX
constexpr profiler_marks nvtx = {
    .begin_range = [](const char* text) { (void)nvtxRangePushA(text); },
    .end_range = [] { (void)nvtxRangePop(); },
    .name_stream = [](stream which, const char* name) { nvtxNameCudaStreamA(which, name); },
    .name_thread =
        [](const char* name) {
          nvtxNameOsThreadA(static_cast<std::uint32_t>(::syscall(SYS_gettid)), name);
        },
};
constexpr const profiler_marks* profiler = &nvtx;
#else
constexpr const profiler_marks* profiler = nullptr;
#endif

constexpr cuda_api runtime = {
    .version = CUDART_VERSION,
    .architectures = MILLRACE_CUDA_ARCHITECTURES,
    .driver_version = [](int* version) -> int { return cudaDriverGetVersion(version); },
    .device_count = [](int* count) -> int { return cudaGetDeviceCount(count); },
    .use_device = [](int device) -> int { return cudaSetDevice(device); },
    .push_device = push_device,
    .pop_device = pop_device,
    .pci_bus_id = [](char* text, int size, int device) -> int {
      return cudaDeviceGetPCIBusId(text, size, device);
    },
    .compute_capability = [](int* capability, int device) -> int {
      int major = 0, minor = 0;
      int code = cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device);
      if (code == 0) {
        code = cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device);
      }
      *capability = 10 * major + minor;
      return code;
    },
    .allocate = [](void** memory, std::size_t bytes) -> int { return cudaMalloc(memory, bytes); },
    .free = [](void* memory) -> int { return cudaFree(memory); },
    .allocate_pinned = [](void** memory, std::size_t bytes, unsigned flags) -> int {
      return cudaHostAlloc(memory, bytes, flags);
    },
    .free_pinned = [](void* memory) -> int { return cudaFreeHost(memory); },
    .priority_range = [](int* lowest, int* highest) -> int {
      return cudaDeviceGetStreamPriorityRange(lowest, highest);
    },
    .create_stream = [](stream* made, unsigned flags, int priority) -> int {
      return cudaStreamCreateWithPriority(made, flags, priority);
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
    .create_event = [](event* made, unsigned flags) -> int {
      return cudaEventCreateWithFlags(made, flags);
    },
    .destroy_event = [](event which) -> int { return cudaEventDestroy(which); },
    .record_event = [](event which, stream behind) -> int {
      return cudaEventRecord(which, behind);
    },
    .synchronize_event = [](event which) -> int { return cudaEventSynchronize(which); },
    .query_event = [](event which) -> int { return cudaEventQuery(which); },
    .wait_event = [](stream waits, event which) -> int {
      return cudaStreamWaitEvent(waits, which, 0);
    },
    .copy_to_device = [](void* to, const void* from, std::size_t bytes, stream on) -> int {
      return cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, on);
    },
    .copy_to_host = [](void* to, const void* from, std::size_t bytes, stream on) -> int {
      return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, on);
    },
    .memory_device = [](const void* memory, int* device) -> int {
      cudaPointerAttributes found{};
      const int code = cudaPointerGetAttributes(&found, memory);
      const bool there = found.type == cudaMemoryTypeDevice || found.type == cudaMemoryTypeManaged;
      *device = code == 0 && there ? found.device : -1;
      return code;
    },
    .launch_batch = launch_batch,
    .launch_copies = launch_copies,
    .find_kernels = find_kernels,
    .last_error = []() -> int { return cudaGetLastError(); },
    .error_name = [](int code) { return cudaGetErrorName(static_cast<cudaError_t>(code)); },
    .error_text = [](int code) { return cudaGetErrorString(static_cast<cudaError_t>(code)); },
    .marks = profiler,
};

}  // namespace

const cuda_api* runtime_api() noexcept {
  return &runtime;
}

const char* runtime_version() noexcept {
  return MILLRACE_CUDA_VERSION;
}

}  // namespace millrace::loader::cuda
