// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/detail/array_copies.hpp>
#include <millrace/loader/cuda/detail/batch_work.hpp>
#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/detail/lone_block.hpp>

#include "support/fake_cuda/fake_stream.hpp"
#include "support/fake_cuda/kernel_memory.hpp"

namespace millrace::test {

/// A simulated CUDA runtime, for tests without a device. Each stream is a thread that runs its
/// copies and kernels (together: its work) later, in their order, each after a random delay. A
/// kernel runs the same code as on a device (`make_tile`), so its output can be compared bit by
/// bit. The runtime records a `fault` for each misuse: a program frees memory that work still uses,
/// uses memory that is not allocated, or uses a handle that has been destroyed.
///
/// A stream can be captured into a graph, which is then never launched. As in CUDA, calls that wait
/// or allocate fail on other threads meanwhile and spoil the capture, unless the thread's capture
/// mode is relaxed, and an event recorded on a captured stream belongs to the graph.
///
/// There may be several devices. Each has a default stream, and a null handle means the default
/// stream of the thread's current device. The first call that needs a device creates its context.
///
/// As in CUDA, a copy from pageable memory reads it when the copy is put on the stream. Unlike in
/// CUDA, no call that frees memory waits for work first, because programs must not rely on that.
///
/// Only one object of this class may exist at a time. `MILLRACE_SEED` has no effect: the seed is an
/// argument of the constructor.
class fake_cuda {
 public:
  using stream = loader::cuda::stream;
  using event = loader::cuda::event;

  static constexpr int invalid_value = 1;
  static constexpr int invalid_configuration = 9;
  static constexpr int out_of_memory = 2;
  static constexpr int no_driver = 35;
  static constexpr int invalid_device = 101;
  static constexpr int invalid_handle = 400;
  static constexpr int illegal_address = 700;
  static constexpr int launch_failure = 719;
  static constexpr int capture_unsupported = 900;
  static constexpr int capture_invalidated = 901;
  static constexpr int capture_unjoined = 904;
  static constexpr int captured_event = 907;

  /// The modes of cudaStreamBeginCapture and of threads.
  enum capture_mode : int { global, thread_local_only, relaxed };

  struct call {
    std::string name;
    std::thread::id thread;
    int code = 0;
  };

  explicit fake_cuda(std::uint64_t seed = 1, int devices = 1) : devices_(devices) {
    world_.random.seed(seed);
    current() = this;
    mode_of_thread() = global;
    for (int i = 0; i < devices; ++i) {
      defaults_.push_back(std::make_unique<fake_stream>(world_, i));
    }
  }
  fake_cuda(const fake_cuda&) = delete;
  fake_cuda& operator=(const fake_cuda&) = delete;
  ~fake_cuda() {
    streams_.clear();
    ended_.clear();
    defaults_.clear();
    for (auto& [address, one] : blocks_) give_back(one.memory);
    for (std::byte* memory : freed_too_soon_) give_back(memory);
    current() = nullptr;
  }

  static const loader::cuda::cuda_api& api();

  // -- delays and faults to simulate ------------------------------------------------------------

  /// Delays all work of one kind by this time, in addition to the random delay.
  void delay(work_kind kind, std::chrono::microseconds time) {
    const std::scoped_lock lock(world_.mutex);
    world_.late[static_cast<std::size_t>(kind)] = time;
  }
  void jitter(std::chrono::microseconds time) {
    const std::scoped_lock lock(world_.mutex);
    world_.jitter = time;
  }
  /// Makes the k-th call from now on, counted from 1, return the code without any effect.
  void fail_call(std::int64_t k, int code) { fail_call("", k, code); }
  /// The same for the k-th call of the function `name`; an empty name means any function.
  void fail_call(const std::string& name, std::int64_t k, int code) {
    const std::scoped_lock lock(world_.mutex);
    fail_at_ = k;
    fail_code_ = code;
    fail_name_ = name;
    fail_further_ = false;
  }
  /// The same for the k-th call and all later ones of which the name contains `name`.
  void fail_calls_from(const std::string& name, std::int64_t k, int code) {
    const std::scoped_lock lock(world_.mutex);
    fail_at_ = k;
    fail_code_ = code;
    fail_name_ = name;
    fail_further_ = true;
  }
  /// Makes the k-th copy or kernel from now on break the device. After that, no work runs, and
  /// every call returns the code.
  void break_work(std::int64_t k, int code) {
    const std::scoped_lock lock(world_.mutex);
    world_.break_at = world_.works + k;
    world_.break_code = code;
  }

  /// The version of the driver, as cudaDriverGetVersion reports it; 0: there is none.
  void set_driver(int version) {
    const std::scoped_lock lock(world_.mutex);
    driver_ = version;
  }

  /// Puts work of the consumer on a stream, which runs it later, in its order.
  void put(stream on, std::vector<used_memory> uses, std::function<void()> run) {
    const std::scoped_lock lock(world_.mutex);
    check_uses(uses, "a kernel of the consumer");
    put_on(*of(on), on, {work_kind::other, std::move(run), std::move(uses)});
  }

  /// Begins to capture a stream into a graph, on the calling thread.
  int begin_capture(stream which, capture_mode mode = global) {
    const std::scoped_lock lock(world_.mutex);
    if (captures_.contains(which)) return refuse(invalid_value);
    captures_[which] = {std::this_thread::get_id(), mode, false, which};
    return 0;
  }
  /// Ends the capture of a stream and drops the graph.
  int end_capture(stream which) {
    const std::scoped_lock lock(world_.mutex);
    const auto found = captures_.find(which);
    if (found == captures_.end()) return refuse(invalid_value);
    const bool unjoined = std::ranges::any_of(captures_, [&](const auto& other) {
      return other.first != which && other.second.origin == which;
    });
    const bool spoiled = found->second.spoiled;
    std::erase_if(captures_, [&](const auto& each) { return each.second.origin == which; });
    return refuse(spoiled ? capture_invalidated : unjoined ? capture_unjoined : 0);
  }

  // -- observed calls and faults ----------------------------------------------------------------

  std::vector<std::string> faults() const {
    const std::scoped_lock lock(world_.mutex);
    return faults_;
  }
  std::vector<call> calls() const {
    const std::scoped_lock lock(world_.mutex);
    return calls_;
  }
  std::int64_t calls_of(const std::string& name) const {
    std::int64_t count = 0;
    for (const call& c : calls()) count += c.name == name ? 1 : 0;
    return count;
  }
  std::uint64_t bytes_to_device() const {
    const std::scoped_lock lock(world_.mutex);
    return bytes_to_device_;
  }
  /// Devices that have a context. On a real device, a context takes memory.
  std::set<int> contexts() const {
    const std::scoped_lock lock(world_.mutex);
    return contexts_;
  }
  /// The current device of the calling thread.
  static int current_device() { return device_of_thread(); }
  /// The error that the next call of cudaGetLastError would return.
  int error_left() const {
    const std::scoped_lock lock(world_.mutex);
    return error_;
  }
  /// Number of memory blocks, streams and events that were created and not yet freed.
  std::size_t alive() const {
    const std::scoped_lock lock(world_.mutex);
    return blocks_.size() + streams_.size() + events_.size();
  }

 private:
  struct block {
    std::byte* memory;
    std::size_t bytes;
    bool pinned;
  };

  /// The capture of a stream, or of a stream that waited for an event of the captured one.
  struct capture {
    std::thread::id thread;
    capture_mode mode = global;
    bool spoiled = false;
    stream origin = nullptr;
  };

  static void give_back(std::byte* memory) { operator delete[](memory, std::align_val_t{256}); }

  static std::atomic<fake_cuda*>& current() {
    static std::atomic<fake_cuda*> current{nullptr};
    return current;
  }
  static fake_cuda* now() { return current(); }

  /// Every call of the runtime starts with this function. Returns 0, or the error code that the
  /// call must return. Creates a context of the device unless the call is only a query (`asks`).
  int enter(const char* name, bool asks = false) {
    if (!asks) contexts_.insert(device_of_thread());
    int code = world_.broken;
    if (is_to_fail(name)) code = fail_code_;
    calls_.push_back({name, std::this_thread::get_id(), code});
    return refuse(code);
  }
  bool is_to_fail(const std::string& name) {
    const bool chosen = fail_further_ ? name.find(fail_name_) != std::string::npos
                                      : fail_name_.empty() || fail_name_ == name;
    if (fail_at_ == 0 || !chosen || --fail_at_ > 0) return false;
    if (fail_further_) fail_at_ = 1;
    return true;
  }
  /// The same for calls that CUDA forbids while another thread captures: they fail, and spoil the
  /// capture.
  int enter_unsafe(const char* name) {
    const int code = enter(name);
    if (code != 0 || mode_of_thread() == relaxed) return code;
    bool forbidden = false;
    for (auto& [which, one] : captures_) {
      const bool own = one.thread == std::this_thread::get_id();
      const bool concerns =
          own ? one.mode != relaxed : one.mode == global && mode_of_thread() == global;
      if (!concerns) continue;
      one.spoiled = forbidden = true;
    }
    if (!forbidden) return 0;
    calls_.back().code = capture_unsupported;
    return refuse(capture_unsupported);
  }
  static int& mode_of_thread() {
    thread_local int mode = global;
    return mode;
  }
  /// Puts work on a stream, or, if the stream is being captured, into its graph.
  void put_on(fake_stream& line, stream which, stream_work work) {
    if (!captures_.contains(which)) line.put(std::move(work));
  }
  int refuse(int code) {
    if (code != 0) error_ = code;
    return code;
  }
  int fault(std::string what, int code) {
    faults_.push_back(std::move(what));
    return refuse(code);
  }

  fake_stream* of(stream which) {
    if (which == nullptr) return defaults_.at(static_cast<std::size_t>(device_of_thread())).get();
    const auto found = streams_.find(which);
    return found == streams_.end() ? nullptr : found->second.get();
  }

  // Returns the block that contains all of these bytes, or null.
  const block* find(const void* memory, std::size_t bytes) const {
    const auto* first = static_cast<const std::byte*>(memory);
    auto after = blocks_.upper_bound(first);
    if (after == blocks_.begin()) return nullptr;
    const block& found = std::prev(after)->second;
    return first + bytes <= found.memory + found.bytes ? &found : nullptr;
  }
  bool check_uses(const std::vector<used_memory>& uses, const std::string& who) {
    for (const used_memory& used : uses) {
      if (find(used.begin, used.bytes) != nullptr) continue;
      faults_.push_back(who + " uses memory that is not there");
      return false;
    }
    return true;
  }
  bool busy(const block& which) const {
    bool result = false;
    for (const auto& one : defaults_) result = result || one->uses(which.memory, which.bytes);
    for (const auto& [handle, one] : streams_) {
      result = result || one->uses(which.memory, which.bytes);
    }
    for (const auto& one : ended_) result = result || one->uses(which.memory, which.bytes);
    return result;
  }

  int allocate(const char* name, void** memory, std::size_t bytes, bool pinned) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter_unsafe(name); code != 0) return code;
    if (bytes == 0) return refuse(invalid_value);
    auto* made = new (std::align_val_t{256}) std::byte[bytes];
    std::memset(made, 0xDB, bytes);
    blocks_[made] = {made, bytes, pinned};
    device_of_block_[made] = device_of_thread();
    *memory = made;
    return 0;
  }
  int release(const char* name, void* memory, bool pinned) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter_unsafe(name); code != 0) return code;
    const auto found = blocks_.find(static_cast<std::byte*>(memory));
    if (found == blocks_.end() || found->second.pinned != pinned) {
      return fault(std::string(name) + " of memory that is not there", invalid_value);
    }
    const block gone = found->second;
    blocks_.erase(found);
    if (busy(gone)) {
      faults_.push_back(std::string(name) + " of memory that work on a stream still uses");
      freed_too_soon_.push_back(gone.memory);  // kept, so that the test can continue and report it
      return 0;
    }
    give_back(gone.memory);
    return 0;
  }

  int copy(void* to, const void* from, std::size_t bytes, stream on, bool to_device) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("cudaMemcpyAsync"); code != 0) return code;
    fake_stream* const line = of(on);
    if (line == nullptr) return fault("a copy on a stream that has ended", invalid_handle);
    if (find(to_device ? to : from, bytes) == nullptr) {
      return fault("a copy of device memory that is not there", invalid_value);
    }
    stream_work work{work_kind::copy, {}, {}};
    work.uses.push_back({to_device ? to : from, bytes});
    const void* const host = to_device ? from : to;
    if (find(host, bytes) != nullptr) {
      work.uses.push_back({host, bytes});
      work.run = [=] { std::memcpy(to, from, bytes); };
    } else if (to_device) {
      const auto* first = static_cast<const std::byte*>(from);
      work.run = [=, taken = std::vector(first, first + bytes)] {
        std::memcpy(to, taken.data(), bytes);
      };
    } else {
      return fault("a copy to pageable memory would wait", invalid_value);
    }
    if (to_device) bytes_to_device_ += bytes;
    put_on(*line, on, std::move(work));
    return 0;
  }

  int launch(const loader::cuda::batch_work& work, stream on) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("kernel launch"); code != 0) return code;
    fake_stream* const line = of(on);
    if (line == nullptr) return fault("a kernel on a stream that has ended", invalid_handle);
    if (work.rows == 0) return fault("a kernel without a block", invalid_configuration);
    std::vector<used_memory> uses = memory_of(work);
    if (!check_uses(uses, "the kernel")) return refuse(illegal_address);
    put_on(*line, on,
           {work_kind::kernel, [work] { loader::cuda::make_batch(work); }, std::move(uses)});
    return 0;
  }

  int launch_copies(const loader::cuda::array_copies& copies, stream on) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("launch of copies"); code != 0) return code;
    fake_stream* const line = of(on);
    if (line == nullptr) return fault("a kernel on a stream that has ended", invalid_handle);
    std::vector<used_memory> uses = memory_of(copies);
    if (!check_uses(uses, "the kernel that copies")) return refuse(illegal_address);
    const auto run = [copies] {
      for (int i = 0; i < copies.count; ++i) loader::cuda::copy_share(copies.arrays[i], 0, 1);
    };
    put_on(*line, on, {work_kind::kernel, run, std::move(uses)});
    return 0;
  }
  int memory_device(const void* memory, int* device) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("cudaPointerGetAttributes"); code != 0) return code;
    const block* const found = find(memory, 1);
    *device = found == nullptr || found->pinned ? -1 : device_of_block_[found->memory];
    return 0;
  }

  int make_stream(stream* made) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("cudaStreamCreateWithFlags"); code != 0) return code;
    auto fresh = std::make_unique<fake_stream>(world_, device_of_thread());
    *made = reinterpret_cast<stream>(fresh.get());
    streams_[*made] = std::move(fresh);
    return 0;
  }
  int end_stream(stream which) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("cudaStreamDestroy"); code != 0) return code;
    const auto found = streams_.find(which);
    if (found == streams_.end()) return fault("a stream that has ended ends", invalid_handle);
    ended_.push_back(std::move(found->second));  // its work still runs
    streams_.erase(found);
    return 0;
  }
  int drain(stream which) {
    std::unique_lock lock(world_.mutex);
    if (const int code = enter_unsafe("cudaStreamSynchronize"); code != 0) return code;
    fake_stream* const line = of(which);
    if (line == nullptr) return fault("a stream that has ended is waited for", invalid_handle);
    if (const auto found = captures_.find(which); found != captures_.end()) {
      found->second.spoiled = true;
      return refuse(capture_unsupported);
    }
    world_.changed.wait(lock, [&] { return line->idle(); });
    return refuse(world_.broken);
  }

  int capture_status(stream which, int* status) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("cudaStreamIsCapturing"); code != 0) return code;
    if (of(which) == nullptr) return fault("a stream that has ended is asked", invalid_handle);
    const auto found = captures_.find(which);
    *status = found == captures_.end() ? 0 : found->second.spoiled ? 2 : 1;
    return 0;
  }
  int exchange_capture_mode(int* mode) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("cudaThreadExchangeStreamCaptureMode"); code != 0) return code;
    std::swap(*mode, mode_of_thread());
    return 0;
  }

  int make_event(event* made) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("cudaEventCreateWithFlags"); code != 0) return code;
    auto fresh = std::make_unique<std::shared_ptr<event_mark>>();
    *made = reinterpret_cast<event>(fresh.get());
    events_[*made] = std::move(fresh);
    device_of_event_[*made] = device_of_thread();
    return 0;
  }
  int end_event(event which) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("cudaEventDestroy"); code != 0) return code;
    if (events_.erase(which) == 0) return fault("an event that has ended ends", invalid_handle);
    return 0;
  }
  int record(event which, stream behind) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("cudaEventRecord"); code != 0) return code;
    const auto found = events_.find(which);
    fake_stream* const line = of(behind);
    if (found == events_.end() || line == nullptr) {
      return fault("an event or a stream that has ended is recorded", invalid_handle);
    }
    if (device_of_event_[which] != line->device()) {
      return fault("an event is recorded on a stream of another device", invalid_handle);
    }
    if (const auto graph = captures_.find(behind); graph != captures_.end()) {
      captured_events_[which] = graph->second;
      return 0;
    }
    captured_events_.erase(which);
    auto mark = std::make_shared<event_mark>();
    *found->second = mark;
    line->put({work_kind::mark,
               [this, mark] {
                 const std::scoped_lock inner(world_.mutex);
                 mark->happened = true;
               },
               {}});
    return 0;
  }
  int wait(stream waits, event which) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("cudaStreamWaitEvent"); code != 0) return code;
    const auto found = events_.find(which);
    fake_stream* const line = of(waits);
    if (found == events_.end() || line == nullptr) {
      return fault("an event or a stream that has ended is waited with", invalid_handle);
    }
    if (const auto graph = captured_events_.find(which); graph != captured_events_.end()) {
      captures_[waits] = graph->second;
      return 0;
    }
    if (*found->second == nullptr) return 0;  // never recorded, so there is nothing to wait for
    put_on(*line, waits,
           {work_kind::mark,
            [this, mark = *found->second] {
              std::unique_lock inner(world_.mutex);
              world_.changed.wait(inner, [&] { return mark->happened; });
            },
            {}});
    return 0;
  }
  int wait_on_host(event which) {
    std::unique_lock lock(world_.mutex);
    if (const int code = enter_unsafe("cudaEventSynchronize"); code != 0) return code;
    const auto found = events_.find(which);
    if (found == events_.end())
      return fault("an event that has ended is waited for", invalid_handle);
    if (captured_events_.contains(which)) return refuse(captured_event);
    const std::shared_ptr<event_mark> mark = *found->second;
    world_.changed.wait(lock, [&] { return mark == nullptr || mark->happened; });
    return refuse(world_.broken);
  }

  int count_devices(int* count) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("cudaGetDeviceCount", true); code != 0) return code;
    *count = devices_;
    return 0;
  }
  int driver_version(int* version) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("cudaDriverGetVersion", true); code != 0) return code;
    *version = driver_;
    return 0;
  }
  int compute_capability(int* capability) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("cudaDeviceGetAttribute", true); code != 0) return code;
    *capability = 70;
    return 0;
  }
  int find_kernels() {
    const std::scoped_lock lock(world_.mutex);
    return enter("cudaFuncGetAttributes");
  }
  // The devices that the thread made current; the last one is. The first is that of cudaSetDevice.
  static std::vector<int>& devices_of_thread() {
    thread_local std::vector<int> devices = {0};
    return devices;
  }
  static int device_of_thread() { return devices_of_thread().back(); }
  int push_device(int device) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("cuCtxPushCurrent", true); code != 0) return code;
    if (device < 0 || device >= devices_) return refuse(invalid_device);
    devices_of_thread().push_back(device);
    contexts_.insert(device);
    return 0;
  }
  int pop_device() {
    const std::scoped_lock lock(world_.mutex);
    // What a failed call leaves behind must not reach the next test.
    if (devices_of_thread().size() > 1) devices_of_thread().pop_back();
    return enter("cuCtxPopCurrent", true);
  }
  int use_device(int device) {
    const std::scoped_lock lock(world_.mutex);
    if (const int code = enter("cudaSetDevice", true); code != 0) return code;
    if (device < 0 || device >= devices_) return refuse(invalid_device);
    devices_of_thread().back() = device;
    contexts_.insert(device);  // as since CUDA 12
    return 0;
  }
  int take_error() {
    const std::scoped_lock lock(world_.mutex);
    return std::exchange(error_, world_.broken);
  }

  mutable stream_world world_;
  int devices_;
  int driver_ = 13000;
  int error_ = 0;
  std::int64_t fail_at_ = 0;
  int fail_code_ = 0;
  std::string fail_name_;
  bool fail_further_ = false;
  std::uint64_t bytes_to_device_ = 0;
  std::vector<call> calls_;
  std::vector<std::string> faults_;
  std::map<const std::byte*, block> blocks_;
  std::vector<std::byte*> freed_too_soon_;
  std::map<event, std::unique_ptr<std::shared_ptr<event_mark>>> events_;
  std::map<event, int> device_of_event_;
  std::map<const std::byte*, int> device_of_block_;
  std::map<stream, capture> captures_;
  std::map<event, capture> captured_events_;
  std::set<int> contexts_;
  std::vector<std::unique_ptr<fake_stream>> defaults_;  // indexed by device
  std::map<stream, std::unique_ptr<fake_stream>> streams_;
  std::vector<std::unique_ptr<fake_stream>> ended_;
};

inline const loader::cuda::cuda_api& fake_cuda::api() {
  static const loader::cuda::cuda_api table = {
      .version = 13000,
      .architectures = "80 90 100",
      .driver_version = [](int* version) { return now()->driver_version(version); },
      .device_count = [](int* count) { return now()->count_devices(count); },
      .use_device = [](int device) { return now()->use_device(device); },
      .push_device = [](int device) { return now()->push_device(device); },
      .pop_device = [] { return now()->pop_device(); },
      .pci_bus_id =
          [](char* text, int size, int) {
            if (size < 13) return invalid_value;
            std::memcpy(text, "0000:01:00.0", 13);
            return 0;
          },
      .compute_capability = [](int* capability,
                               int) { return now()->compute_capability(capability); },
      .allocate = [](void** m,
                     std::size_t b) { return now()->allocate("cudaMalloc", m, b, false); },
      .free = [](void* m) { return now()->release("cudaFree", m, false); },
      .allocate_pinned = [](void** m,
                            std::size_t b) { return now()->allocate("cudaHostAlloc", m, b, true); },
      .free_pinned = [](void* m) { return now()->release("cudaFreeHost", m, true); },
      .create_stream = [](stream* made) { return now()->make_stream(made); },
      .destroy_stream = [](stream which) { return now()->end_stream(which); },
      .synchronize_stream = [](stream which) { return now()->drain(which); },
      .capture_status = [](stream which,
                           int* status) { return now()->capture_status(which, status); },
      .exchange_capture_mode = [](int* mode) { return now()->exchange_capture_mode(mode); },
      .create_event = [](event* made) { return now()->make_event(made); },
      .destroy_event = [](event which) { return now()->end_event(which); },
      .record_event = [](event which, stream behind) { return now()->record(which, behind); },
      .synchronize_event = [](event which) { return now()->wait_on_host(which); },
      .wait_event = [](stream waits, event which) { return now()->wait(waits, which); },
      .copy_to_device = [](void* to, const void* from, std::size_t bytes,
                           stream on) { return now()->copy(to, from, bytes, on, true); },
      .copy_to_host = [](void* to, const void* from, std::size_t bytes,
                         stream on) { return now()->copy(to, from, bytes, on, false); },
      .memory_device = [](const void* m, int* device) { return now()->memory_device(m, device); },
      .launch_batch = [](const loader::cuda::batch_work& work,
                         stream on) { return now()->launch(work, on); },
      .launch_copies = [](const loader::cuda::array_copies& copies,
                          stream on) { return now()->launch_copies(copies, on); },
      .find_kernels = [] { return now()->find_kernels(); },
      .last_error = [] { return now()->take_error(); },
      .error_name =
          [](int code) { return code == no_driver ? "cudaErrorInsufficientDriver" : "fakeError"; },
      .error_text = [](int) { return "injected by a test"; },
  };
  return table;
}

}  // namespace millrace::test
