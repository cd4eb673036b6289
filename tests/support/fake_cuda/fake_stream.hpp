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

/// Streams and events as CUDA has them, on threads of the processor.
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

/// What all streams of a runtime have in common: one lock, since nothing here is about speed.
struct stream_world {
  std::mutex mutex;
  std::condition_variable changed;
  std::mt19937_64 random{1};
  std::chrono::microseconds jitter{100};   ///< any work is late by up to so much
  std::chrono::microseconds late[4] = {};  ///< and by so much more, by its kind
  int broken = 0;                          ///< the code of a device that runs nothing any more
  std::int64_t works = 0;                  ///< that have begun
  std::int64_t break_at = -1;              ///< the work that breaks it, counted from 1
  int break_code = 0;
};

/// One recording of an event; those who wait for it hold it, whatever the event does next.
struct event_mark {
  bool happened = false;  // under the world's lock
};

/// A thread that does what it was given, later, in order.
class fake_stream {
 public:
  explicit fake_stream(stream_world& world, int device = 0)
      : world_(world), device_(device), thread_([this] { loop(); }) {}
  fake_stream(const fake_stream&) = delete;
  fake_stream& operator=(const fake_stream&) = delete;
  /// Does what is left first.
  ~fake_stream() {
    {
      const std::scoped_lock lock(world_.mutex);
      ended_ = true;
    }
    world_.changed.notify_all();
  }

  // All below with the world's lock held.

  void put(stream_work work) {
    queue_.push_back(std::move(work));
    world_.changed.notify_all();
  }
  int device() const noexcept { return device_; }
  bool idle() const noexcept { return queue_.empty(); }

  /// Whether work that has not been done yet uses a byte of the memory.
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
      stream_work& work = queue_.front();  // a deque's elements stay where they are
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
      queue_.pop_front();  // only now, so that what runs is seen to be in use
      world_.changed.notify_all();
    }
  }

  stream_world& world_;
  const int device_;
  std::deque<stream_work> queue_;
  bool ended_ = false;
  std::jthread thread_;  // last, so that it is joined first
};

}  // namespace millrace::test
