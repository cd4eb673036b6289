// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/detail/cuda_api.hpp>

#include "support/fake_cuda/call_log.hpp"
#include "support/fake_cuda/captures.hpp"
#include "support/fake_cuda/fake_memory.hpp"
#include "support/fake_cuda/fake_stream.hpp"

namespace millrace::test {

/// The state of a simulated CUDA runtime, and the steps that many of its calls share. The caller of
/// each function must hold the lock.
class runtime_state : public capture_terms {
 public:
  using stream = loader::cuda::stream;
  using event = loader::cuda::event;
  using lock_type = std::unique_lock<std::mutex>;

  static constexpr int runtime_version = 13000;

  static constexpr int invalid_value = 1;
  static constexpr int out_of_memory = 2;
  static constexpr int initialization_error = 3;
  static constexpr int unloading = 4;
  static constexpr int invalid_configuration = 9;
  static constexpr int no_driver = 35;
  static constexpr int no_device = 100;
  static constexpr int invalid_device = 101;
  static constexpr int no_kernel_image = 209;
  static constexpr int invalid_handle = 400;
  static constexpr int not_ready = 600;
  static constexpr int illegal_address = 700;
  static constexpr int launch_failure = 719;

  static constexpr int lowest_priority = 0;
  static constexpr int highest_priority = -5;

  runtime_state(const runtime_state&) = delete;
  runtime_state& operator=(const runtime_state&) = delete;

 protected:
  struct fake_event {
    // the event's last recording, or null if it was never recorded
    std::shared_ptr<event_mark> mark;
    int device = 0;
    unsigned flags = 0;
  };

  struct stream_properties {
    unsigned flags = 0;
    int priority = 0;
  };

  // The state that CUDA keeps for each thread.
  struct thread_state {
    // A stack of devices. The last device is current. `cudaSetDevice` replaces the last device, and
    // `push_device` adds one.
    std::vector<int> devices = {0};
    int mode = global;  // mode for captures
  };
  static thread_state& this_thread() {
    thread_local thread_state state;
    return state;
  }
  static int device_of_thread() { return this_thread().devices.back(); }

  runtime_state(std::uint64_t seed, int devices) : devices_(devices) {
    const char* connections = std::getenv("CUDA_DEVICE_MAX_CONNECTIONS");
    one_queue_ = connections != nullptr && std::string_view(connections) == "1";
    world_.random.seed(seed);
    this_thread().mode = global;
    for (int i = 0; i < devices; ++i) {
      if (one_queue_) queues_.push_back(std::make_shared<hardware_queue>(world_));
      defaults_.push_back(std::make_unique<fake_stream>(world_, queue_of(i), i, true));
    }
  }
  ~runtime_state() {
    streams_.clear();
    ended_.clear();
    defaults_.clear();
    queues_.clear();
  }

  /// Every call starts with this function. Returns 0, or the code that the call must return.
  /// Creates the context of the current device, unless the call is only a query (`asks`).
  int enter(const char* name, bool asks = false) {
    if (!asks) contexts_.insert(device_of_thread());
    return log_.add(name, state());
  }
  /// Does the same for calls that are unsafe while a stream is captured.
  int enter_unsafe(const char* name) {
    if (const int code = enter(name); code != 0) return code;
    const int code = captures_.refuse_unsafe(static_cast<capture_mode>(this_thread().mode));
    return code == 0 ? 0 : log_.correct(code);
  }
  /// Returns the code that every call returns in the present state of process, driver and device.
  int state() const {
    if (unloading_) return unloading;
    // A driver supports all runtimes of its own major version and of older ones.
    if (driver_ / 1000 < runtime_version / 1000) return no_driver;
    return devices_ == 0 ? no_device : world_.broken;
  }

  fake_stream* of(stream which) {
    constexpr std::uintptr_t legacy = 1;  // cudaStreamLegacy
    if (which == nullptr || reinterpret_cast<std::uintptr_t>(which) == legacy) {
      return defaults_.at(static_cast<std::size_t>(device_of_thread())).get();
    }
    const auto found = streams_.find(which);
    return found == streams_.end() ? nullptr : found->second.get();
  }
  bool is_default(const fake_stream& line) const {
    return &line == defaults_[static_cast<std::size_t>(line.device())].get();
  }
  std::shared_ptr<hardware_queue> queue_of(int device) {
    return one_queue_ ? queues_[static_cast<std::size_t>(device)]
                      : std::make_shared<hardware_queue>(world_);
  }

  /// Calls `act` for each stream with which `line` is synchronized. On each device, the default
  /// stream and each blocking stream wait for each other.
  template <class Act>
  void for_each_synchronized(const fake_stream& line, Act act) {
    if (!line.blocking()) return;
    if (!is_default(line)) {
      act(static_cast<stream>(nullptr), *defaults_[static_cast<std::size_t>(line.device())]);
      return;
    }
    for (auto& [handle, other] : streams_) {
      if (other->device() == line.device() && other->blocking()) act(handle, *other);
    }
  }
  /// Returns an error code if `line` is a default stream that cannot be used now, because a
  /// blocking stream of its device is being captured. Otherwise returns 0.
  /// @param spoil  if true, the attempt makes that capture invalid
  int refuse_default(const fake_stream& line, bool spoil) {
    int code = 0;
    if (!is_default(line)) return 0;
    for_each_synchronized(line, [&](stream handle, fake_stream&) {
      if (!captures_.contains(handle)) return;
      code = capture_implicit;
      if (spoil) (void)captures_.spoil(handle, code);
    });
    return code;
  }
  /// Puts work on a stream or, if the stream is being captured, into its graph.
  int submit(fake_stream& line, stream which, stream_work work) {
    if (const int code = refuse_default(line, true); code != 0) return log_.refuse(code);
    if (captures_.contains(which)) return log_.refuse(captures_.add(which));
    for_each_synchronized(line, [&](stream, fake_stream& other) { line.wait(other.record()); });
    line.put(std::move(work));
    return 0;
  }

  bool check_uses(const std::vector<used_memory>& uses, const std::string& who) {
    for (const used_memory& used : uses) {
      if (memory_.find(used.begin, used.bytes) != nullptr) continue;
      (void)log_.fault(who + " uses memory that is not there", 0);
      return false;
    }
    return true;
  }
  /// Calls `act` for each stream. Includes destroyed streams, because their work may still run.
  template <class Act>
  void for_each_stream(Act act) const {
    for (const auto& line : defaults_) act(*line);
    for (const auto& [handle, line] : streams_) act(*line);
    for (const auto& line : ended_) act(*line);
  }
  bool busy(const void* memory, std::size_t bytes) const {
    bool result = false;
    for_each_stream([&](const fake_stream& line) { result = result || line.uses(memory, bytes); });
    return result;
  }

  mutable stream_world world_;
  const ::pid_t process_ = ::getpid();
  const int devices_;
  int driver_ = runtime_version;
  bool unloading_ = false;
  bool one_queue_ = false;
  int kernels_refused_ = 0;
  bool late_queries_ = false;
  std::set<int> loaded_;
  std::vector<std::string> loaded_by_;
  std::set<int> contexts_;
  std::uint64_t bytes_to_device_ = 0;
  call_log log_;
  captures captures_;
  fake_memory memory_;
  std::map<stream, stream_properties> properties_;
  std::vector<unsigned> event_flags_, pinned_flags_;
  std::map<stream, unsigned> recorded_flags_;  // of all events recorded on a stream, joined
  std::map<event, std::unique_ptr<fake_event>> events_;
  // indexed by device; empty if each stream has its own queue
  std::vector<std::shared_ptr<hardware_queue>> queues_;
  std::vector<std::unique_ptr<fake_stream>> defaults_;  // indexed by device
  std::map<stream, std::unique_ptr<fake_stream>> streams_;
  std::vector<std::unique_ptr<fake_stream>> ended_;
};

}  // namespace millrace::test
