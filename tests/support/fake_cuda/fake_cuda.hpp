// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "support/fake_cuda/fake_runtime.hpp"

namespace millrace::test {

/// A simulated CUDA runtime, for tests without a device. This class has the functions with which
/// tests control and observe the simulation. The simulation itself is in these files:
///
///   fake_stream.hpp    streams and events: threads that run copies and kernels late, in order
///   device_clock.hpp   when that work would run on a device, in virtual time
///   captures.hpp       captures of streams into graphs, and what they forbid
///   fake_memory.hpp    memory of the device and page-locked memory
///   call_log.hpp       calls, injected failures, errors and faults
///   runtime_state.hpp, fake_runtime.hpp, fake_api.hpp   the calls, built from these
///
/// A kernel runs the same code as on a device (`make_tile`), so its output can be compared bit by
/// bit. The runtime records a fault for each misuse. A program misuses the runtime if it frees
/// memory that unfinished work uses, uses memory that is not allocated, or uses a destroyed handle.
///
/// There may be several devices. Each device has a default stream, and a null handle means the
/// default stream of the thread's current device. The first call that needs a device creates the
/// context of this device. If the environment has CUDA_DEVICE_MAX_CONNECTIONS=1, all streams of a
/// device share one queue, as on a real device. Work then runs in the order of its submission, and
/// work that waits delays all later work.
///
/// As in CUDA, a copy from pageable memory reads that memory when the copy is submitted. In CUDA,
/// calls that free memory may first wait for work. Here, they never wait, because programs must not
/// rely on such waits.
///
/// Only one object of this class may exist at a time. `MILLRACE_SEED` has no effect: the seed is an
/// argument of the constructor.
class fake_cuda : public fake_runtime {
 public:
  using call = runtime_call;

  explicit fake_cuda(std::uint64_t seed = 1, int devices = 1) : fake_runtime(seed, devices) {}

  // -- delays and faults to simulate ------------------------------------------------------------

  /// Delays all work of one kind by this time, in addition to the random delay.
  void delay(work_kind kind, std::chrono::microseconds time) {
    const std::scoped_lock lock(world_.mutex);
    world_.late[static_cast<std::size_t>(kind)] = time;
  }
  /// Sets the longest random delay of work and of calls.
  void jitter(std::chrono::microseconds work, std::chrono::microseconds calls = {}) {
    const std::scoped_lock lock(world_.mutex);
    world_.jitter = work;
    world_.host_jitter = calls;
  }
  /// Sets the virtual times that work and calls take.
  void set_costs(const device_costs& costs) {
    const std::scoped_lock lock(world_.mutex);
    world_.costs = costs;
  }
  /// Makes the k-th call after this one return `code` without any effect. `k` counts from 1.
  void fail_call(std::int64_t k, int code) { fail_call("", k, code); }
  /// Does the same for the k-th call of the function `name`. An empty name means any function.
  void fail_call(const std::string& name, std::int64_t k, int code) {
    const std::scoped_lock lock(world_.mutex);
    log_.fail(name, k, code, false);
  }
  /// Does the same for the k-th call and all later calls, counting only functions whose name
  /// contains `name`.
  void fail_calls_from(const std::string& name, std::int64_t k, int code) {
    const std::scoped_lock lock(world_.mutex);
    log_.fail(name, k, code, true);
  }
  /// Makes the k-th copy or kernel from now on break the device. After that, no work runs, and
  /// every call returns `code`.
  void break_work(std::int64_t k, int code) {
    const std::scoped_lock lock(world_.mutex);
    world_.break_at = world_.works + k;
    world_.break_code = code;
  }
  /// Sets the driver version that `cudaDriverGetVersion` reports; 0 means that there is no driver.
  /// If the driver's major version is older than the runtime's, all other calls fail.
  void set_driver(int version) {
    const std::scoped_lock lock(world_.mutex);
    driver_ = version;
  }
  /// Makes loading the kernels fail with `code`, as if the program had no kernels for this device.
  void refuse_kernels(int code) {
    const std::scoped_lock lock(world_.mutex);
    kernels_refused_ = code;
  }
  /// Makes the first `cudaEventQuery` after each recording of an event answer that the event has
  /// not completed, even if it just has. A program that asks before it waits must then wait, on a
  /// machine of any speed.
  void answer_queries_late() {
    const std::scoped_lock lock(world_.mutex);
    late_queries_ = true;
  }
  /// Simulates the end of the process: every call fails, as in destructors of static objects.
  void unload() {
    const std::scoped_lock lock(world_.mutex);
    unloading_ = true;
  }

  /// Enqueues work of the consumer on a stream. The stream runs it later, in order with its other
  /// work.
  /// @param lasts  the virtual time that the work takes
  void put(stream on, std::vector<used_memory> uses, std::function<void()> run,
           virtual_time lasts = {}) {
    const std::scoped_lock lock(world_.mutex);
    check_uses(uses, "a kernel of the consumer");
    (void)submit(*of(on), on, {work_kind::other, std::move(run), std::move(uses), lasts});
  }
  /// Tells the runtime that the host writes to this memory now. Records a fault if unfinished work
  /// uses the memory.
  void host_writes(const void* memory, std::size_t bytes) {
    const std::scoped_lock lock(world_.mutex);
    if (busy(memory, bytes)) {
      (void)log_.fault("the host writes to memory that work on a stream still uses", 0);
    }
  }

  /// Begins to capture a stream into a graph, on the calling thread.
  int begin_capture(stream which, capture_mode mode = global) {
    const std::scoped_lock lock(world_.mutex);
    if (of(which) == nullptr) return log_.fault("a stream that has ended", invalid_handle);
    if (is_default(*of(which))) return log_.refuse(capture_unsupported);
    return log_.refuse(captures_.begin(which, mode));
  }
  /// Ends the capture of a stream and drops the graph.
  int end_capture(stream which) {
    const std::scoped_lock lock(world_.mutex);
    return log_.refuse(captures_.end(which));
  }

  // -- observed calls and faults ----------------------------------------------------------------

  std::vector<std::string> faults() const {
    const std::scoped_lock lock(world_.mutex);
    return log_.faults();
  }
  std::vector<call> calls() const {
    const std::scoped_lock lock(world_.mutex);
    return log_.calls();
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
  /// Returns the devices that have a context. On a real device, a context takes memory.
  std::set<int> contexts() const {
    const std::scoped_lock lock(world_.mutex);
    return contexts_;
  }
  /// The current device of the calling thread.
  static int current_device() { return device_of_thread(); }
  /// Returns an error that a thread left behind, or 0. The thread's next call of `cudaGetLastError`
  /// would return it.
  int error_left() const {
    const std::scoped_lock lock(world_.mutex);
    return log_.error_left();
  }
  /// Number of memory blocks, streams and events that were created and not yet freed.
  std::size_t alive() const {
    const std::scoped_lock lock(world_.mutex);
    return memory_.size() + streams_.size() + events_.size();
  }
  /// Returns the work that was put on a stream so far, in order, with its virtual times.
  std::vector<work_time> times_of(stream which) {
    const std::scoped_lock lock(world_.mutex);
    return of(which)->schedule().works();
  }
  /// Returns all work of one kind on all streams, in the order in which it began.
  std::vector<work_time> times_of(work_kind kind) {
    const std::scoped_lock lock(world_.mutex);
    std::vector<work_time> found;
    for_each_stream([&](const fake_stream& line) {
      std::ranges::copy_if(line.schedule().works(), std::back_inserter(found),
                           [&](const work_time& each) { return each.kind == kind; });
    });
    std::ranges::stable_sort(found, {}, &work_time::begin);
    return found;
  }
  /// The streams that exist now.
  std::vector<stream> streams() const {
    const std::scoped_lock lock(world_.mutex);
    std::vector<stream> all;
    for (const auto& each : streams_) all.push_back(each.first);
    return all;
  }
  /// Returns the priority of a stream. Also works after the stream was destroyed, as does
  /// `flags_of`.
  int priority_of(stream which) const {
    const std::scoped_lock lock(world_.mutex);
    return properties_.at(which).priority;
  }
  unsigned flags_of(stream which) const {
    const std::scoped_lock lock(world_.mutex);
    return properties_.at(which).flags;
  }
  /// Returns the flags of all events created so far; `pinned_flags` returns those of all blocks of
  /// page-locked memory.
  std::vector<unsigned> event_flags() const {
    const std::scoped_lock lock(world_.mutex);
    return event_flags_;
  }
  /// Returns the joined flags of all events that were recorded on a stream.
  unsigned flags_recorded_on(stream which) const {
    const std::scoped_lock lock(world_.mutex);
    const auto found = recorded_flags_.find(which);
    return found == recorded_flags_.end() ? 0 : found->second;
  }
  std::vector<unsigned> pinned_flags() const {
    const std::scoped_lock lock(world_.mutex);
    return pinned_flags_;
  }
  /// Returns the names of the calls that loaded the kernels, in order: one call per device.
  std::vector<std::string> loads() const {
    const std::scoped_lock lock(world_.mutex);
    return loaded_by_;
  }
  /// True if all streams of a device share one queue.
  bool has_one_queue() const { return one_queue_; }
};

}  // namespace millrace::test
