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

/// Simulates CUDA streams and events with threads of the CPU.
namespace millrace::test {

enum class work_kind : std::uint8_t { copy, kernel, mark, other };

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
};

/// State that all streams of a runtime share. One lock protects it, since speed does not matter
/// here.
struct stream_world {
  std::mutex mutex;
  std::condition_variable changed;
  std::mt19937_64 random{1};
  std::chrono::microseconds jitter{100};   ///< longest random delay of any work
  std::chrono::microseconds late[4] = {};  ///< additional delay, indexed by the kind of work
  int broken = 0;                          ///< error code if the device is broken; else 0
  std::int64_t works = 0;                  ///< number of copies and kernels begun so far
  std::int64_t break_at = -1;              ///< index of the work that breaks the device, from 1
  int break_code = 0;
};

/// One recording of an event. Work that waits for it keeps the object alive, even if the event is
/// recorded again.
struct event_mark {
  bool happened = false;  // protected by stream_world::mutex
};

/// A thread that runs the work it was given, later, in order.
class fake_stream {
 public:
  explicit fake_stream(stream_world& world, int device = 0)
      : world_(world), device_(device), thread_([this] { loop(); }) {}
  fake_stream(const fake_stream&) = delete;
  fake_stream& operator=(const fake_stream&) = delete;
  /// Runs the remaining work first.
  ~fake_stream() {
    {
      const std::scoped_lock lock(world_.mutex);
      ended_ = true;
    }
    world_.changed.notify_all();
  }

  // The caller of the following functions must hold stream_world::mutex.

  void put(stream_work work) {
    queue_.push_back(std::move(work));
    world_.changed.notify_all();
  }
  int device() const noexcept { return device_; }
  bool idle() const noexcept { return queue_.empty(); }

  /// Whether unfinished work uses a byte of this memory.
  bool uses(const void* memory, std::size_t bytes) const noexcept {
    const auto begin = reinterpret_cast<std::uintptr_t>(memory);
    for (const stream_work& work : queue_) {
      for (const used_memory& used : work.uses) {
        const auto first = reinterpret_cast<std::uintptr_t>(used.begin);
        if (first < begin + bytes && begin < first + used.bytes) return true;
      }
    }
    return false;
  }

 private:
  void loop() {
    std::unique_lock lock(world_.mutex);
    for (;;) {
      world_.changed.wait(lock, [&] { return ended_ || !queue_.empty(); });
      if (queue_.empty()) return;
      stream_work& work = queue_.front();  // adding to a deque keeps this reference valid
      const auto jitter = static_cast<std::uint64_t>(world_.jitter.count());
      const std::chrono::microseconds wait(world_.random() % (jitter + 1));
      const auto late = world_.late[static_cast<std::size_t>(work.kind)];
      lock.unlock();
      if (const auto all = wait + late; all.count() > 0) std::this_thread::sleep_for(all);
      lock.lock();
      if (work.kind != work_kind::mark && ++world_.works == world_.break_at) {
        world_.broken = world_.break_code;
      }
      const bool broken = world_.broken != 0;
      lock.unlock();
      if (!broken || work.kind == work_kind::mark) work.run();
      lock.lock();
      queue_.pop_front();  // only now, so that uses() includes running work
      world_.changed.notify_all();
    }
  }

  stream_world& world_;
  const int device_;
  std::deque<stream_work> queue_;
  bool ended_ = false;
  std::jthread thread_;  // declared last, so that it is joined first
};

}  // namespace millrace::test
