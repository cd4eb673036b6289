// SPDX-License-Identifier: Apache-2.0
//
// A CUDA runtime made of host threads. It implements the part of the API that the programs of
// tests/gpu and bench/gpu use. These programs can link to it instead of the real runtime, and then
// run on machines without a GPU. So tests find changes that break the programs. The results prove
// nothing about CUDA: streams run their work in order and without delay, captures forbid nothing,
// and measured times are those of host threads.
//
// If $MILLRACE_HOST_RUNTIME is `no_waits`, streams do not wait for events. The tests must then
// fail.

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/detail/array_copies.hpp>
#include <millrace/loader/cuda/detail/lone_block.hpp>

#include "bench/gpu/spin.hpp"
#include "gpu/checksum.hpp"
#include "launch_batch.hpp"

namespace {

using work = std::function<void()>;

/// Counts the recordings of an event: `issued` by the host, and `done` on the stream.
struct recordings {
  std::mutex mutex;
  std::condition_variable happened;
  std::int64_t issued = 0;
  std::int64_t done = 0;
  std::chrono::steady_clock::time_point at;

  std::int64_t last_issued() {
    const std::scoped_lock lock(mutex);
    return issued;
  }
  void wait_for(std::int64_t number) {
    std::unique_lock lock(mutex);
    happened.wait(lock, [&] { return done >= number; });
  }
};

thread_local int current_device = 0;
thread_local int capture_mode = 0;
thread_local std::vector<CUcontext> pushed_contexts;
std::array<std::atomic<bool>, 2> has_context{};

}  // namespace

// The names of the runtime's own types and functions.
// NOLINTBEGIN(readability-identifier-naming)

struct CUevent_st {
  std::shared_ptr<recordings> recorded = std::make_shared<recordings>();
};
struct CUgraph_st {
  std::vector<work> nodes;
};
struct CUgraphExec_st {
  std::vector<work> nodes;
};

struct CUstream_st {
 public:
  CUstream_st() : thread_([this] { run(); }) {}
  CUstream_st(const CUstream_st&) = delete;
  CUstream_st& operator=(const CUstream_st&) = delete;
  ~CUstream_st() {
    {
      const std::scoped_lock lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    thread_.join();
  }

  void put(work next) {
    constexpr std::size_t most_queued = 1024;
    std::unique_lock lock(mutex_);
    if (captured_ != nullptr) {
      captured_->nodes.push_back(std::move(next));
      return;
    }
    changed_.wait(lock, [&] { return queue_.size() < most_queued; });
    queue_.push_back(std::move(next));
    changed_.notify_all();
  }
  void synchronize() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return queue_.empty(); });
  }

  void begin_capture() {
    const std::scoped_lock lock(mutex_);
    captured_ = std::make_unique<CUgraph_st>();
  }
  CUgraph_st* end_capture() {
    const std::scoped_lock lock(mutex_);
    return captured_.release();
  }
  bool is_captured() {
    const std::scoped_lock lock(mutex_);
    return captured_ != nullptr;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [&] { return ended_ || !queue_.empty(); });
      if (queue_.empty()) return;
      const work& next = queue_.front();
      lock.unlock();
      next();
      lock.lock();
      queue_.pop_front();  // removed only now, so that synchronize() waits for running work
      changed_.notify_all();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<work> queue_;  // a reference to an element stays valid while others are added
  std::unique_ptr<CUgraph_st> captured_;
  bool ended_ = false;
  std::thread thread_;
};

namespace {

CUstream_st& stream_of(cudaStream_t given) {
  static auto& default_stream = *new CUstream_st;
  return given != nullptr ? *given : default_stream;
}

void* new_block(std::size_t bytes) {
  constexpr std::size_t page = 4096;
  const std::size_t rounded = (bytes + page) / page * page;
  void* block = std::aligned_alloc(page, rounded);
  if (block != nullptr) std::memset(block, 0xAB, rounded);
  return block;
}

/// The memory of the simulated devices. It is host memory.
class device_blocks {
 public:
  static device_blocks& of_process() {
    static auto& all = *new device_blocks;
    return all;
  }
  void add(const void* memory, std::size_t bytes, int device) {
    const std::scoped_lock lock(mutex_);
    const auto* const first = static_cast<const std::byte*>(memory);
    blocks_[first] = {first + bytes, device};
  }
  void remove(const void* memory) {
    const std::scoped_lock lock(mutex_);
    blocks_.erase(static_cast<const std::byte*>(memory));
  }
  /// Returns the device of an address, or -1 if the address is not in a device's memory.
  int device_of(const void* memory) {
    const std::scoped_lock lock(mutex_);
    const auto* const at = static_cast<const std::byte*>(memory);
    auto after = blocks_.upper_bound(at);
    if (after == blocks_.begin()) return -1;
    const auto& [end, device] = std::prev(after)->second;
    return at < end ? device : -1;
  }

 private:
  std::mutex mutex_;
  std::map<const std::byte*, std::pair<const std::byte*, int>> blocks_;
};

CUresult get_device(CUdevice* device, int ordinal) {
  *device = ordinal;
  return CUDA_SUCCESS;
}
CUresult retain_context(CUcontext* context, CUdevice device) {
  has_context.at(static_cast<std::size_t>(device)) = true;
  static std::array<char, 2> contexts{};
  *context = reinterpret_cast<CUcontext>(&contexts.at(static_cast<std::size_t>(device)));
  return CUDA_SUCCESS;
}
CUresult push_context(CUcontext context) {
  pushed_contexts.push_back(context);
  return CUDA_SUCCESS;
}
CUresult current_context(CUcontext* context) {
  *context = pushed_contexts.empty() ? nullptr : pushed_contexts.back();
  return CUDA_SUCCESS;
}
CUresult pop_context(CUcontext* context) {
  (void)current_context(context);
  pushed_contexts.pop_back();
  return CUDA_SUCCESS;
}
CUresult context_state(CUdevice device, unsigned* flags, int* active) {
  *flags = 0;
  *active = has_context.at(static_cast<std::size_t>(device)) ? 1 : 0;
  return CUDA_SUCCESS;
}

bool waits_for_events() {
  const char* set = std::getenv("MILLRACE_HOST_RUNTIME");
  return set == nullptr || std::string_view(set) != "no_waits";
}

void rest(std::int64_t nanoseconds) {
  std::this_thread::sleep_for(std::chrono::nanoseconds(nanoseconds));
}

}  // namespace

extern "C" {

cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceCount(int* count) {
  *count = static_cast<int>(has_context.size());
  return cudaSuccess;
}
cudaError_t cudaGetDevice(int* device) {
  *device = current_device;
  return cudaSuccess;
}
cudaError_t cudaSetDevice(int device) {
  current_device = device;
  has_context.at(static_cast<std::size_t>(device)) = true;
  return cudaSuccess;
}
cudaError_t cudaDeviceGetPCIBusId(char* text, int size, int) {
  if (size > 0) *text = '\0';
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr, int) {
  *value = 9;
  return cudaSuccess;
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* device, int) {
  constexpr std::string_view name = "threads of the host, which are no GPU";
  *device = cudaDeviceProp{};
  name.copy(device->name, sizeof(device->name) - 1);
  return cudaSuccess;
}
cudaError_t cudaGetDriverEntryPointByVersion(const char* name, void** function, unsigned,
                                             unsigned long long,
                                             cudaDriverEntryPointQueryResult* result) {
  const std::array<std::pair<std::string_view, void*>, 6> functions = {
      {{"cuDeviceGet", reinterpret_cast<void*>(get_device)},
       {"cuDevicePrimaryCtxRetain", reinterpret_cast<void*>(retain_context)},
       {"cuCtxPushCurrent", reinterpret_cast<void*>(push_context)},
       {"cuCtxPopCurrent", reinterpret_cast<void*>(pop_context)},
       {"cuCtxGetCurrent", reinterpret_cast<void*>(current_context)},
       {"cuDevicePrimaryCtxGetState", reinterpret_cast<void*>(context_state)}}};
  for (const auto& [known, address] : functions) {
    if (known != name) continue;
    *function = address;
    *result = cudaDriverEntryPointSuccess;
    return cudaSuccess;
  }
  return cudaErrorSymbolNotFound;
}

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  *memory = new_block(bytes);
  return *memory != nullptr ? cudaSuccess : cudaErrorMemoryAllocation;
}
cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  const cudaError_t code = cudaHostAlloc(memory, bytes, 0);
  device_blocks::of_process().add(*memory, bytes, current_device);
  return code;
}
cudaError_t cudaFreeHost(void* memory) {
  std::free(memory);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) {
  device_blocks::of_process().remove(memory);
  // If streams do not wait, their work may still use the memory. A test that has found a wrong
  // batch must be able to say so.
  return waits_for_events() ? cudaFreeHost(memory) : cudaSuccess;
}
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* found, const void* memory) {
  *found = cudaPointerAttributes{};
  found->device = device_blocks::of_process().device_of(memory);
  found->type = found->device < 0 ? cudaMemoryTypeUnregistered : cudaMemoryTypeDevice;
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind,
                            cudaStream_t on) {
  stream_of(on).put([=] { std::memcpy(to, from, bytes); });
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* to, int value, std::size_t bytes, cudaStream_t on) {
  stream_of(on).put([=] { std::memset(to, value, bytes); });
  return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t* made, unsigned) {
  *made = std::make_unique<CUstream_st>().release();
  return cudaSuccess;
}
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* made, unsigned flags, int) {
  return cudaStreamCreateWithFlags(made, flags);
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* lowest, int* highest) {
  *lowest = 0;
  *highest = -5;
  return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t which) {
  const std::unique_ptr<CUstream_st> ended(which);
  return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t which) {
  stream_of(which).synchronize();
  return cudaSuccess;
}
cudaError_t cudaStreamIsCapturing(cudaStream_t which, cudaStreamCaptureStatus* status) {
  *status =
      stream_of(which).is_captured() ? cudaStreamCaptureStatusActive : cudaStreamCaptureStatusNone;
  return cudaSuccess;
}
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  const int before = std::exchange(capture_mode, static_cast<int>(*mode));
  *mode = static_cast<cudaStreamCaptureMode>(before);
  return cudaSuccess;
}
cudaError_t cudaStreamBeginCapture(cudaStream_t which, cudaStreamCaptureMode) {
  stream_of(which).begin_capture();
  return cudaSuccess;
}
cudaError_t cudaStreamEndCapture(cudaStream_t which, cudaGraph_t* graph) {
  *graph = stream_of(which).end_capture();
  return cudaSuccess;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t*, std::size_t* count) {
  *count = graph->nodes.size();
  return cudaSuccess;
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* made, cudaGraph_t graph, unsigned long long) {
  *made = std::make_unique<CUgraphExec_st>(CUgraphExec_st{graph->nodes}).release();
  return cudaSuccess;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t on) {
  for (const work& node : graph->nodes) stream_of(on).put(node);
  return cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t which) {
  const std::unique_ptr<CUgraph_st> ended(which);
  return cudaSuccess;
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t which) {
  const std::unique_ptr<CUgraphExec_st> ended(which);
  return cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t* made, unsigned) {
  *made = std::make_unique<CUevent_st>().release();
  return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t* made) {
  return cudaEventCreateWithFlags(made, 0);
}
cudaError_t cudaEventDestroy(cudaEvent_t which) {
  const std::unique_ptr<CUevent_st> ended(which);
  return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t which, cudaStream_t on) {
  const auto& recorded = which->recorded;
  std::int64_t number = 0;
  {
    const std::scoped_lock lock(recorded->mutex);
    number = ++recorded->issued;
  }
  stream_of(on).put([recorded, number] {
    const std::scoped_lock lock(recorded->mutex);
    recorded->done = number;
    recorded->at = std::chrono::steady_clock::now();
    recorded->happened.notify_all();
  });
  return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t which) {
  which->recorded->wait_for(which->recorded->last_issued());
  return cudaSuccess;
}
cudaError_t cudaEventQuery(cudaEvent_t which) {
  const std::scoped_lock lock(which->recorded->mutex);
  return which->recorded->done >= which->recorded->issued ? cudaSuccess : cudaErrorNotReady;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t on, cudaEvent_t which, unsigned) {
  static const bool waits = waits_for_events();
  const auto number = which->recorded->last_issued();
  const auto wait = [recorded = which->recorded, number] { recorded->wait_for(number); };
  if (waits) stream_of(on).put(wait);
  return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t from, cudaEvent_t to) {
  const std::chrono::duration<float, std::milli> time = to->recorded->at - from->recorded->at;
  *milliseconds = time.count();
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorName(cudaError_t) {
  return "an error of the host's runtime";
}
const char* cudaGetErrorString(cudaError_t) {
  return "";
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming)

namespace millrace::bench {

int plan_step(load load, step_kernel* plan) {
  *plan = step_kernel{};
  plan->load = load;
  if (load == load::memory) plan->buffer_bytes = 4096;
  return 0;
}
int run_step(const step_kernel& /*plan*/, void* /*buffer*/, const std::int64_t* tokens,
             std::int64_t rows, std::int64_t seq_len, std::int64_t* sum, std::int64_t nanoseconds,
             CUstream_st* on) {
  stream_of(on).put([=] {
    *sum = 0;
    for (std::int64_t row = 0; row < rows; ++row) *sum += tokens[row * seq_len];
    rest(nanoseconds);
  });
  return 0;
}
int run_nothing(CUstream_st* on) {
  stream_of(on).put([] {});
  return 0;
}

}  // namespace millrace::bench

namespace millrace::test {
namespace {

template <class T>
std::uint64_t sum_of_array(const T* array, std::int64_t count, std::uint64_t number) {
  std::uint64_t sum = 0;
  for (std::int64_t i = 0; array != nullptr && i < count; ++i) {
    sum += sum_term(static_cast<std::uint64_t>(static_cast<std::int64_t>(array[i])),
                    8 * static_cast<std::uint64_t>(i) + number);
  }
  return sum;
}

}  // namespace

int add_checksum(const summed_arrays& arrays, std::int64_t delay_ns, std::uint64_t* sum,
                 CUstream_st* on) {
  stream_of(on).put([=] {
    rest(delay_ns);
    *sum += sum_of_array(arrays.tokens, arrays.elements, 0) +
            sum_of_array(arrays.labels, arrays.elements, 1) +
            sum_of_array(arrays.position_ids, arrays.elements, 2) +
            sum_of_array(arrays.loss_mask, arrays.elements, 3) +
            sum_of_array(arrays.cu_seqlens, arrays.entries, 4);
  });
  return 0;
}

}  // namespace millrace::test

namespace millrace::loader::cuda {

int launch_batch(const batch_work& work, stream on) {
  stream_of(on).put([work] { make_batch(work); });
  return 0;
}
int launch_copies(const array_copies& copies, stream on) {
  stream_of(on).put([copies] {
    for (int i = 0; i < copies.count; ++i) copy_share(copies.arrays[i], 0, 1);
  });
  return 0;
}
int find_kernels() {
  return 0;
}

}  // namespace millrace::loader::cuda
