// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/detail/array_copies.hpp>
#include <millrace/loader/cuda/detail/batch_work.hpp>
#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/detail/lone_block.hpp>

#include "support/fake_cuda/kernel_memory.hpp"
#include "support/fake_cuda/runtime_state.hpp"

namespace millrace::test {

/// The calls of a simulated CUDA runtime. The caller of each function must hold the lock. Functions
/// that wait get the lock as an argument.
class fake_runtime : public runtime_state {
 public:
  fake_runtime(const fake_runtime&) = delete;
  fake_runtime& operator=(const fake_runtime&) = delete;

  /// The table of all calls (`fake_api.hpp`).
  static const loader::cuda::cuda_api& api();

 protected:
  fake_runtime(std::uint64_t seed, int devices) : runtime_state(seed, devices) { current() = this; }
  ~fake_runtime() { current() = nullptr; }

  static std::atomic<fake_runtime*>& current() {
    static std::atomic<fake_runtime*> current{nullptr};
    return current;
  }

  /// Makes a call of the runtime object that exists now.
  /// @param call  a function that takes the runtime and the held lock, and returns the code of the
  ///              call
  template <class Call>
  static int make(Call call) {
    fake_runtime& self = *current();
    // Never lock in a forked child. If another thread of the parent held the lock at the fork, no
    // thread of the child could release it.
    if (self.process_ != ::getpid()) return initialization_error;
    std::unique_lock lock(self.world_.mutex);
    const auto late = self.world_.random_up_to(self.world_.host_jitter);
    if (late.count() > 0) {
      lock.unlock();
      std::this_thread::sleep_for(late);
      lock.lock();
    }
    self.world_.clocks.spend(self.world_.costs.call);
    return call(self, lock);
  }

  // -- memory and work --------------------------------------------------------------------------

  int allocate(const char* name, void** memory, std::size_t bytes, bool pinned, unsigned flags) {
    if (const int code = enter_unsafe(name); code != 0) return code;
    if (bytes == 0) return log_.refuse(invalid_value);
    if (pinned) pinned_flags_.push_back(flags);
    *memory = memory_.allocate(bytes, pinned, device_of_thread());
    return 0;
  }
  int release(const char* name, void* memory, bool pinned) {
    if (const int code = enter_unsafe(name); code != 0) return code;
    const fake_memory::block* const found = memory_.at(memory);
    if (found == nullptr || found->pinned != pinned) {
      return log_.fault(std::string(name) + " of memory that is not there", invalid_value);
    }
    const bool in_use = busy(found->memory, found->bytes);
    memory_.release(*found, in_use);
    if (in_use) {
      (void)log_.fault(std::string(name) + " of memory that work on a stream still uses", 0);
    }
    return 0;
  }
  int copy(void* to, const void* from, std::size_t bytes, stream on, bool to_device) {
    if (const int code = enter("cudaMemcpyAsync"); code != 0) return code;
    fake_stream* const line = of(on);
    if (line == nullptr) return log_.fault("a copy on a stream that has ended", invalid_handle);
    if (memory_.find(to_device ? to : from, bytes) == nullptr) {
      return log_.fault("a copy of device memory that is not there", invalid_value);
    }
    stream_work work{work_kind::copy, {}, {}, world_.costs.copy};
    work.uses.push_back({to_device ? to : from, bytes});
    const void* const host = to_device ? from : to;
    if (memory_.find(host, bytes) != nullptr) {
      work.uses.push_back({host, bytes});
      work.run = [=] { std::memcpy(to, from, bytes); };
    } else if (to_device) {
      const auto* first = static_cast<const std::byte*>(from);
      work.run = [=, taken = std::vector(first, first + bytes)] {
        std::memcpy(to, taken.data(), bytes);
      };
    } else {
      return log_.fault("a copy to pageable memory would wait", invalid_value);
    }
    if (to_device) bytes_to_device_ += bytes;
    return submit(*line, on, std::move(work));
  }
  int launch(const loader::cuda::batch_work& work, stream on, lock_type& lock) {
    if (const int code = enter("kernel launch"); code != 0) return code;
    fake_stream* const line = of(on);
    if (line == nullptr) return log_.fault("a kernel on a stream that has ended", invalid_handle);
    if (work.rows == 0) return log_.fault("a kernel without a block", invalid_configuration);
    if (const int code = load_kernels("kernel launch", lock); code != 0) return log_.refuse(code);
    std::vector<used_memory> uses = memory_of(work);
    if (!check_uses(uses, "the kernel")) return log_.refuse(illegal_address);
    const auto run = [work] { loader::cuda::make_batch(work); };
    return submit(*line, on, {work_kind::kernel, run, std::move(uses), world_.costs.kernel});
  }
  int launch_copies(const loader::cuda::array_copies& copies, stream on, lock_type& lock) {
    if (const int code = enter("launch of copies"); code != 0) return code;
    fake_stream* const line = of(on);
    if (line == nullptr) return log_.fault("a kernel on a stream that has ended", invalid_handle);
    if (const int code = load_kernels("launch of copies", lock); code != 0) {
      return log_.refuse(code);
    }
    std::vector<used_memory> uses = memory_of(copies);
    if (!check_uses(uses, "the kernel that copies")) return log_.refuse(illegal_address);
    const auto run = [copies] {
      for (int i = 0; i < copies.count; ++i) loader::cuda::copy_share(copies.arrays[i], 0, 1);
    };
    return submit(*line, on, {work_kind::kernel, run, std::move(uses), world_.costs.kernel});
  }
  int memory_device(const void* memory, int* device) {
    if (const int code = enter("cudaPointerGetAttributes"); code != 0) return code;
    const fake_memory::block* const found = memory_.find(memory, 1);
    *device = found == nullptr || found->pinned ? -1 : found->device;
    return 0;
  }
  /// Loads the kernels when a device first needs them. The documentation of lazy loading says that
  /// this may wait for all work on the device, so this function waits, too.
  int load_kernels(const char* who, lock_type& lock) {
    if (kernels_refused_ != 0) return kernels_refused_;
    const int device = device_of_thread();
    if (!loaded_.insert(device).second) return 0;
    loaded_by_.emplace_back(who);
    wait_for(*defaults_[static_cast<std::size_t>(device)], lock);
    for (const auto& [handle, line] : streams_) {
      if (line->device() == device) wait_for(*line, lock);
    }
    return world_.broken;
  }
  int find_kernels(lock_type& lock) {
    if (const int code = enter("cudaFuncGetAttributes"); code != 0) return code;
    return log_.refuse(load_kernels("cudaFuncGetAttributes", lock));
  }

  // -- streams and events -----------------------------------------------------------------------

  int make_stream(stream* made, unsigned flags, int priority) {
    if (const int code = enter("cudaStreamCreateWithPriority"); code != 0) return code;
    const int device = device_of_thread();
    auto fresh = std::make_unique<fake_stream>(world_, queue_of(device), device,
                                               flags != loader::cuda::stream_non_blocking);
    *made = reinterpret_cast<stream>(fresh.get());
    // As in CUDA, a priority out of range becomes the nearest valid priority.
    properties_[*made] = {flags, std::clamp(priority, highest_priority, lowest_priority)};
    streams_[*made] = std::move(fresh);
    return 0;
  }
  int end_stream(stream which) {
    if (const int code = enter("cudaStreamDestroy"); code != 0) return code;
    const auto found = streams_.find(which);
    if (found == streams_.end()) return log_.fault("a stream that has ended ends", invalid_handle);
    ended_.push_back(std::move(found->second));  // kept, because its work still runs
    streams_.erase(found);
    return 0;
  }
  void wait_for(const fake_stream& line, lock_type& lock) {
    const virtual_time done = line.schedule().end();
    world_.changed.wait(lock, [&] { return line.idle(); });
    world_.clocks.reach(done);
  }
  int drain(stream which, lock_type& lock) {
    if (const int code = enter_unsafe("cudaStreamSynchronize"); code != 0) return code;
    fake_stream* const line = of(which);
    if (line == nullptr) return log_.fault("a stream that has ended is waited for", invalid_handle);
    if (const int code = refuse_default(*line, true); code != 0) return log_.refuse(code);
    if (const int code = captures_.refuse_wait_for(which); code != 0) return log_.refuse(code);
    for_each_synchronized(*line, [&](stream, fake_stream& other) {
      if (is_default(*line)) line->wait(other.record());
    });
    wait_for(*line, lock);
    return log_.refuse(world_.broken);
  }
  int priority_range(int* lowest, int* highest) {
    if (const int code = enter("cudaDeviceGetStreamPriorityRange"); code != 0) return code;
    *lowest = lowest_priority;
    *highest = highest_priority;
    return 0;
  }
  int capture_status(stream which, int* status) {
    if (const int code = enter("cudaStreamIsCapturing"); code != 0) return code;
    fake_stream* const line = of(which);
    if (line == nullptr) return log_.fault("a stream that has ended is asked", invalid_handle);
    *status = captures_.status(which);
    return log_.refuse(refuse_default(*line, false));
  }
  int exchange_capture_mode(int* mode) {
    if (const int code = enter("cudaThreadExchangeStreamCaptureMode"); code != 0) return code;
    std::swap(*mode, this_thread().mode);
    return 0;
  }

  int make_event(event* made, unsigned flags) {
    if (const int code = enter("cudaEventCreateWithFlags"); code != 0) return code;
    auto fresh = std::make_unique<fake_event>();
    fresh->device = device_of_thread();
    fresh->flags = flags;
    *made = reinterpret_cast<event>(fresh.get());
    events_[*made] = std::move(fresh);
    event_flags_.push_back(flags);
    return 0;
  }
  int end_event(event which) {
    if (const int code = enter("cudaEventDestroy"); code != 0) return code;
    captures_.forget(which);
    if (events_.erase(which) == 0) {
      return log_.fault("an event that has ended ends", invalid_handle);
    }
    return 0;
  }
  int record(event which, stream behind) {
    if (const int code = enter("cudaEventRecord"); code != 0) return code;
    const auto found = events_.find(which);
    fake_stream* const line = of(behind);
    if (found == events_.end() || line == nullptr) {
      return log_.fault("an event or a stream that has ended is recorded", invalid_handle);
    }
    if (found->second->device != line->device()) {
      return log_.fault("an event is recorded on a stream of another device", invalid_handle);
    }
    if (const int code = refuse_default(*line, true); code != 0) return log_.refuse(code);
    if (const int code = captures_.record(which, behind); code != 0) return log_.refuse(code);
    if (captures_.contains(behind)) return 0;
    for_each_synchronized(*line, [&](stream, fake_stream& other) { line->wait(other.record()); });
    found->second->mark = line->record();
    recorded_flags_[behind] |= found->second->flags;
    return 0;
  }
  int wait(stream waits, event which) {
    if (const int code = enter("cudaStreamWaitEvent"); code != 0) return code;
    const auto found = events_.find(which);
    fake_stream* const line = of(waits);
    if (found == events_.end() || line == nullptr) {
      return log_.fault("an event or a stream that has ended is waited with", invalid_handle);
    }
    const std::shared_ptr<event_mark>& mark = found->second->mark;
    if (const int code = refuse_default(*line, true); code != 0) return log_.refuse(code);
    if (captures_.concerns(waits, which)) {
      if (is_default(*line)) return log_.refuse(capture_implicit);
      return log_.refuse(captures_.wait(waits, which, mark != nullptr));
    }
    if (mark == nullptr) return 0;  // never recorded, so there is nothing to wait for
    world_.clocks.reach(mark->time.recorded);
    line->wait(mark);
    return 0;
  }
  int query_event(event which) {
    if (const int code = enter_unsafe("cudaEventQuery"); code != 0) return code;
    const auto found = events_.find(which);
    if (found == events_.end()) {
      return log_.fault("an event that has ended is asked", invalid_handle);
    }
    if (const int code = captures_.refuse_wait_for(which); code != 0) return log_.refuse(code);
    const std::shared_ptr<event_mark>& mark = found->second->mark;
    const bool first = mark != nullptr && !std::exchange(mark->queried, true);
    if (mark != nullptr && (!mark->happened || (first && late_queries_))) {
      return log_.refuse(not_ready);
    }
    if (mark != nullptr) world_.clocks.reach(mark->time.reached);
    return log_.refuse(world_.broken);
  }
  int wait_on_host(event which, lock_type& lock) {
    if (const int code = enter_unsafe("cudaEventSynchronize"); code != 0) return code;
    const auto found = events_.find(which);
    if (found == events_.end()) {
      return log_.fault("an event that has ended is waited for", invalid_handle);
    }
    if ((found->second->flags & loader::cuda::event_blocking_sync) == 0) {
      (void)log_.fault("a host thread spins, because its event is without blocking sync", 0);
    }
    if (const int code = captures_.refuse_wait_for(which); code != 0) return log_.refuse(code);
    const std::shared_ptr<event_mark> mark = found->second->mark;
    if (mark == nullptr) return log_.refuse(world_.broken);
    world_.changed.wait(lock, [&] { return mark->happened; });
    world_.clocks.reach(mark->time.reached);
    return log_.refuse(world_.broken);
  }

  // -- devices ----------------------------------------------------------------------------------

  int count_devices(int* count) {
    if (const int code = enter("cudaGetDeviceCount", true); code != 0) return code;
    *count = devices_;
    return 0;
  }
  int driver_version(int* version) {
    *version = driver_;  // works even if the driver is too old for every other call
    return log_.add("cudaDriverGetVersion", unloading_ ? unloading : 0);
  }
  int compute_capability(int* capability) {
    if (const int code = enter("cudaDeviceGetAttribute", true); code != 0) return code;
    *capability = 70;
    return 0;
  }
  int push_device(int device) {
    if (const int code = enter("cuCtxPushCurrent", true); code != 0) return code;
    if (device < 0 || device >= devices_) return log_.refuse(invalid_device);
    this_thread().devices.push_back(device);
    contexts_.insert(device);
    return 0;
  }
  int pop_device() {
    // Pops the device even if the call fails, so that the device does not stay current in the next
    // test.
    std::vector<int>& devices = this_thread().devices;
    if (devices.size() > 1) devices.pop_back();
    return enter("cuCtxPopCurrent", true);
  }
  int use_device(int device) {
    if (const int code = enter("cudaSetDevice", true); code != 0) return code;
    if (device < 0 || device >= devices_) return log_.refuse(invalid_device);
    this_thread().devices.back() = device;
    contexts_.insert(device);  // as cudaSetDevice does since CUDA 12
    return 0;
  }
};

}  // namespace millrace::test

#include "support/fake_cuda/fake_api.hpp"  // defines fake_runtime::api()
