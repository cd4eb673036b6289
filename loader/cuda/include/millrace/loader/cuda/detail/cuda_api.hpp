// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// The types that `cudaStream_t` and `cudaEvent_t` point to.
struct CUstream_st;  // NOLINT(readability-identifier-naming): the runtime's own name
struct CUevent_st;   // NOLINT(readability-identifier-naming)

namespace millrace::loader::cuda {

struct array_copies;
struct batch_work;

/// A `cudaStream_t`; null is the default stream.
using stream = CUstream_st*;
/// A `cudaEvent_t`.
using event = CUevent_st*;

/// Flags for calls that create a resource, with CUDA's values.
inline constexpr unsigned stream_non_blocking = 1;   ///< cudaStreamNonBlocking
inline constexpr unsigned event_blocking_sync = 1;   ///< cudaEventBlockingSync
inline constexpr unsigned event_disable_timing = 2;  ///< cudaEventDisableTiming
inline constexpr unsigned host_portable = 1;         ///< cudaHostAllocPortable

/// NVTX calls, which give Nsight Systems and other profilers time ranges and names to show. If no
/// profiler runs, these calls do almost nothing.
struct profiler_marks {
  void (*begin_range)(const char* text);  ///< nvtxRangePush, on the calling thread
  void (*end_range)();                    ///< nvtxRangePop
  void (*name_stream)(cuda::stream which, const char* name);  ///< nvtxNameCudaStream
  void (*name_thread)(const char* name);  ///< nvtxNameOsThread, of the calling thread
};

/// A table of all calls into CUDA, including kernel launches. A test can substitute another
/// runtime, and the rest of this library needs no CUDA headers.
///
/// Each function returns a `cudaError_t` as an int, 0 for success, and does the same as the runtime
/// call that its comment names. The table and its strings live as long as the process.
struct cuda_api {
  int version = 0;                 ///< version of the runtime, e.g. 13000 for CUDA 13.0
  const char* architectures = "";  ///< GPU architectures that have kernels, e.g. "80 90 100"

  int (*driver_version)(int* version);  ///< cudaDriverGetVersion; gives 0 if there is no driver
  int (*device_count)(int* count);      ///< cudaGetDeviceCount
  int (*use_device)(int device);        ///< cudaSetDevice
  /// cuCtxPushCurrent with the device's primary context. Creates that context if there is none.
  int (*push_device)(int device);
  int (*pop_device)();                                  ///< cuCtxPopCurrent
  int (*pci_bus_id)(char* text, int size, int device);  ///< cudaDeviceGetPCIBusId
  /// cudaDeviceGetAttribute: 10 * major + minor compute capability, e.g. 90 for 9.0.
  int (*compute_capability)(int* capability, int device);

  int (*allocate)(void** memory, std::size_t bytes);  ///< cudaMalloc
  int (*free)(void* memory);                          ///< cudaFree
  /// cudaHostAlloc
  int (*allocate_pinned)(void** memory, std::size_t bytes, unsigned flags);
  int (*free_pinned)(void* memory);  ///< cudaFreeHost

  /// cudaDeviceGetStreamPriorityRange of the current device. A lower number is a higher priority.
  int (*priority_range)(int* lowest, int* highest);
  /// cudaStreamCreateWithPriority; other streams usually have priority 0.
  int (*create_stream)(cuda::stream* made, unsigned flags, int priority);
  int (*destroy_stream)(cuda::stream which);      ///< cudaStreamDestroy
  int (*synchronize_stream)(cuda::stream which);  ///< cudaStreamSynchronize
  /// cudaStreamIsCapturing: `status` is 0 if the stream is not being captured into a CUDA graph.
  int (*capture_status)(cuda::stream which, int* status);
  /// cudaThreadExchangeStreamCaptureMode: 0 global, 1 thread-local, 2 relaxed.
  int (*exchange_capture_mode)(int* mode);
  int (*create_event)(cuda::event* made, unsigned flags);       ///< cudaEventCreateWithFlags
  int (*destroy_event)(cuda::event which);                      ///< cudaEventDestroy
  int (*record_event)(cuda::event which, cuda::stream behind);  ///< cudaEventRecord
  int (*synchronize_event)(cuda::event which);                  ///< cudaEventSynchronize
  int (*query_event)(cuda::event which);  ///< cudaEventQuery: 600 if not completed
  int (*wait_event)(cuda::stream waits, cuda::event which);  ///< cudaStreamWaitEvent

  /// cudaMemcpyAsync, from the host to the device.
  int (*copy_to_device)(void* to, const void* from, std::size_t bytes, cuda::stream on);
  /// cudaMemcpyAsync, from the device to the host.
  int (*copy_to_host)(void* to, const void* from, std::size_t bytes, cuda::stream on);
  /// cudaPointerGetAttributes: gives the device whose memory contains the address, or -1 if there
  /// is no such device.
  int (*memory_device)(const void* memory, int* device);
  /// Launches the kernels that make all fields of a micro-batch (`make_tile`).
  int (*launch_batch)(const batch_work& work, cuda::stream on);
  /// Launches the kernel that copies all arrays of a micro-batch (`copy_share`).
  int (*launch_copies)(const array_copies& copies, cuda::stream on);
  /// cudaFuncGetAttributes for each variant of the kernels. Returns 0 if the current device can run
  /// all of them.
  int (*find_kernels)();

  int (*last_error)();                  ///< cudaGetLastError: clears the error
  const char* (*error_name)(int code);  ///< cudaGetErrorName
  const char* (*error_text)(int code);  ///< cudaGetErrorString

  /// Marks in the timeline of a profiler; null if the build has no NVTX.
  const profiler_marks* marks = nullptr;
};

/// Returns the table of the statically linked CUDA runtime, or null in a build without CUDA. May be
/// called on any machine: without a driver, the table's functions return the `cudaError_t` 35.
const cuda_api* runtime_api() noexcept;

/// The CUDA version of this build, for `--version`: "CUDA 13.0", or "without CUDA".
const char* runtime_version() noexcept;

}  // namespace millrace::loader::cuda
