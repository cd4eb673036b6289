// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <map>
#include <thread>
#include <vector>

/// Computes when work would run on a device, in virtual time. Virtual time does not depend on how
/// fast this machine is. The streams of `fake_stream.hpp` really run the work, but at other times.
namespace millrace::test {

/// Time since the runtime was created, on clocks that only the functions of this file advance.
using virtual_time = std::chrono::nanoseconds;

enum class work_kind : std::uint8_t { copy, kernel, mark, other };

/// The virtual times that work on the device and calls of the runtime take. Tests set these times.
struct device_costs {
  virtual_time call{0};    ///< time that a call takes on its host thread
  virtual_time copy{0};    ///< time that a copy takes on its stream
  virtual_time kernel{0};  ///< time that a kernel of the loader takes on its stream
  virtual_time wait{0};  ///< time between an event and the next work of a stream that waits for it
};

/// The times of a piece of work. Between the `end` of one piece and the `begin` of the next, the
/// stream is idle.
struct work_time {
  work_kind kind = work_kind::other;
  virtual_time submitted{0};
  virtual_time runnable{0};  ///< when all work of other streams that this work waits for was done
  virtual_time begin{0};     ///< later than `runnable` if the stream, or its queue, was busy
  virtual_time end{0};
};

/// The clocks of the host threads. A thread's clock is never earlier than an event that the thread
/// has waited for, or another thread's call that it relies on.
class host_clocks {
 public:
  virtual_time now() { return clocks_[std::this_thread::get_id()]; }
  void spend(virtual_time time) { clocks_[std::this_thread::get_id()] += time; }
  void reach(virtual_time time) {
    virtual_time& clock = clocks_[std::this_thread::get_id()];
    clock = std::max(clock, time);
  }

 private:
  std::map<std::thread::id, virtual_time> clocks_;
};

/// One recording of an event: when the host recorded it, and when the device reached it.
struct recording_time {
  virtual_time recorded{0};
  virtual_time reached{0};
};

/// The times of the work of one stream. A stream runs its work in order. Other streams may share
/// its hardware queue. Work in that queue can begin only after the work at the head of the queue
/// has begun.
class stream_schedule {
 public:
  void add(work_kind kind, virtual_time submitted, virtual_time lasts, virtual_time& head) {
    const virtual_time runnable = std::max(submitted, waited_);
    const virtual_time begin = std::max({runnable, end_, head});
    head = begin;
    end_ = begin + lasts;
    works_.push_back({kind, submitted, runnable, begin, end_});
  }
  recording_time record(virtual_time submitted) const {
    return {submitted, std::max(submitted, end())};
  }
  /// Makes work that is added later begin after this recording. If the event has already happened
  /// when the stream reaches the wait, the wait costs no time.
  void wait(virtual_time submitted, const recording_time& event, virtual_time cost,
            virtual_time& head) {
    const virtual_time here = std::max({submitted, end(), head});
    if (event.reached > here) waited_ = event.reached + cost;
    head = std::max(here, waited_);
  }
  /// Returns the time when all work on the stream is done.
  virtual_time end() const { return std::max(end_, waited_); }
  const std::vector<work_time>& works() const { return works_; }

 private:
  virtual_time end_{0};
  virtual_time waited_{0};
  std::vector<work_time> works_;
};

}  // namespace millrace::test
