// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "support/fake_cuda/device_clock.hpp"

/// Simulates CUDA streams and events with threads of the CPU.
namespace millrace::test {

/// Memory that a piece of work reads or writes.
struct used_memory {
  const void* begin = nullptr;
  std::size_t bytes = 0;
};

/// One piece of work on a stream.
struct stream_work {
  work_kind kind = work_kind::other;
  std::function<void()> run;
  std::vector<used_memory> uses;
  virtual_time lasts{0};
};

/// State that all streams of a runtime share. One lock protects all of it, because speed does not
/// matter here.
struct stream_world {
  std::mutex mutex;
  std::condition_variable changed;
  std::mt19937_64 random{1};
  std::chrono::microseconds jitter{100};     ///< longest random delay of a piece of work
  std::chrono::microseconds host_jitter{0};  ///< longest random delay of a call
  std::chrono::microseconds late[4] = {};    ///< additional delay, indexed by the kind of work
  int broken = 0;                            ///< error code if the device is broken; else 0
  std::int64_t works = 0;                    ///< number of copies and kernels begun so far
  /// number of the copy or kernel that breaks the device, counted from 1
  std::int64_t break_at = -1;
  int break_code = 0;
  device_costs costs;
  host_clocks clocks;

  std::chrono::microseconds random_up_to(std::chrono::microseconds longest) {
    return std::chrono::microseconds(random() % (static_cast<std::uint64_t>(longest.count()) + 1));
  }
};

/// One recording of an event. Work that waits for this recording keeps the object alive, even if
/// the event is recorded again.
struct event_mark {
  // protected by stream_world::mutex
  bool happened = false;
  bool queried = false;
  recording_time time;
};

/// A thread that runs work later, in the order in which the work was added. As on a device, a queue
/// belongs to one stream, or to all streams of a device (if CUDA_DEVICE_MAX_CONNECTIONS=1).
class hardware_queue {
 public:
  explicit hardware_queue(stream_world& world) : world_(world), thread_([this] { loop(); }) {}
  hardware_queue(const hardware_queue&) = delete;
  hardware_queue& operator=(const hardware_queue&) = delete;
  /// Runs the remaining work, then ends the thread.
  ~hardware_queue() {
    {
      const std::scoped_lock lock(world_.mutex);
      ended_ = true;
    }
    world_.changed.notify_all();
  }

  // The caller of the following functions must hold stream_world::mutex.

  /// @param of  identifies the stream
  void put(const void* of, stream_work work) {
    queue_.push_back({of, std::move(work)});
    world_.changed.notify_all();
  }
  bool has_work_of(const void* of) const noexcept {
    for (const entry& each : queue_) {
      if (each.of == of) return true;
    }
    return false;
  }
  /// True if unfinished work uses a byte of this memory.
  bool uses(const void* memory, std::size_t bytes) const noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    for (const entry& each : queue_) {
      for (const used_memory& used : each.work.uses) {
        const auto first = reinterpret_cast<std::uintptr_t>(used.begin);
        if (first < begin + bytes && begin < first + used.bytes) return true;
      }
    }
    return false;
  }
  /// The virtual time when the work at the head of the queue began. Later work in the queue cannot
  /// begin earlier.
  virtual_time& head() noexcept { return head_; }

 private:
  struct entry {
    const void* of;
    stream_work work;
  };

  void loop() {
    std::unique_lock lock(world_.mutex);
    for (;;) {
      world_.changed.wait(lock, [&] { return ended_ || !queue_.empty(); });
      if (queue_.empty()) return;
      stream_work& work = queue_.front().work;  // adding to a deque keeps this reference valid
      const auto wait =
          world_.random_up_to(world_.jitter) + world_.late[static_cast<std::size_t>(work.kind)];
      lock.unlock();
      if (wait.count() > 0) std::this_thread::sleep_for(wait);
      lock.lock();
      if (work.kind != work_kind::mark && ++world_.works == world_.break_at) {
        world_.broken = world_.break_code;
      }
      const bool broken = world_.broken != 0;
      lock.unlock();
      if (!broken || work.kind == work_kind::mark) work.run();
      lock.lock();
      queue_.pop_front();  // removed only now, so that uses() includes running work
      world_.changed.notify_all();
    }
  }

  stream_world& world_;
  std::deque<entry> queue_;
  virtual_time head_{0};
  bool ended_ = false;
  std::jthread thread_;  // declared last, so that it is joined first
};

/// A stream: its work runs in the order in which it was submitted. The caller of each function must
/// hold stream_world::mutex.
class fake_stream {
 public:
  /// @param device    index of the device that the stream belongs to
  /// @param blocking  if true, this stream and the default stream of its device wait for each other
  fake_stream(stream_world& world, std::shared_ptr<hardware_queue> queue, int device, bool blocking)
      : world_(world), queue_(std::move(queue)), device_(device), blocking_(blocking) {}

  int device() const noexcept { return device_; }
  bool blocking() const noexcept { return blocking_; }
  bool idle() const noexcept { return !queue_->has_work_of(this); }
  bool uses(const void* memory, std::size_t bytes) const noexcept {
    return queue_->uses(memory, bytes);
  }
  const stream_schedule& schedule() const noexcept { return schedule_; }

  void put(stream_work work) {
    schedule_.add(work.kind, world_.clocks.now(), work.lasts, queue_->head());
    queue_->put(this, std::move(work));
  }
  /// Records an event after all work submitted to this stream so far.
  std::shared_ptr<event_mark> record() {
    auto mark = std::make_shared<event_mark>();
    mark->time = schedule_.record(world_.clocks.now());
    queue_->put(this, {work_kind::mark,
                       [&world = world_, mark] {
                         const std::scoped_lock lock(world.mutex);
                         mark->happened = true;
                       },
                       {},
                       {}});
    return mark;
  }
  /// Makes later work on this stream wait for this recording.
  void wait(std::shared_ptr<event_mark> mark) {
    schedule_.wait(world_.clocks.now(), mark->time, world_.costs.wait, queue_->head());
    queue_->put(this, {work_kind::mark,
                       [&world = world_, mark = std::move(mark)] {
                         std::unique_lock lock(world.mutex);
                         world.changed.wait(lock, [&] { return mark->happened; });
                       },
                       {},
                       {}});
  }

 private:
  stream_world& world_;
  std::shared_ptr<hardware_queue> queue_;
  const int device_;
  const bool blocking_;
  stream_schedule schedule_;
};

}  // namespace millrace::test
