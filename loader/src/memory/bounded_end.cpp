// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/memory/bounded_end.hpp>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <millrace/loader/detail/memory/named_thread.hpp>

namespace millrace::loader {

namespace detail {

/// The destruction of an object on a thread of its own. That thread and the destructor that waits
/// for it share this struct.
struct running_end {
  std::string line;  // for the report; guarded by the lock of `late_ends`
  std::mutex mutex;
  std::condition_variable ended;
  bool done = false;
};

/// The destructions that took longer than their time limit. This struct is never destroyed, because
/// threads may still use it when the process exits.
struct late_ends {
  std::mutex mutex;
  std::int64_t ever = 0;
  std::vector<std::shared_ptr<running_end>> now;

  static late_ends& of_process() {
    static auto& all = *new late_ends;
    return all;
  }
};

/// @pre end->mutex is locked, so that the thread cannot finish at the same time
MILLRACE_INLINE void report_late(const std::shared_ptr<running_end>& end, std::string line) {
  late_ends& all = late_ends::of_process();
  const std::lock_guard lock(all.mutex);
  ++all.ever;
  end->line = std::move(line);
  all.now.push_back(end);
}

MILLRACE_INLINE void report_done(const std::shared_ptr<running_end>& end) {
  late_ends& all = late_ends::of_process();
  const std::lock_guard lock(all.mutex);
  std::erase(all.now, end);
}

// `what` is a copy, because the object may own the caller's string.
// NOLINTNEXTLINE(performance-unnecessary-value-param)
MILLRACE_INLINE void end_within(std::chrono::milliseconds within, std::string what,
                                void (*end)(void*), void* object) noexcept {
  std::shared_ptr<running_end> running;
  std::thread thread;
  try {
    running = std::make_shared<running_end>();
    thread = std::thread([running, end, object] {
      try {
        (void)set_up_this_thread({.name = "mr-end"});
      } catch (...) {  // NOLINT(bugprone-empty-catch): without memory, the thread has no name
      }
      end(object);
      const std::lock_guard lock(running->mutex);
      running->done = true;
      report_done(running);
      running->ended.notify_all();
    });
  } catch (const std::exception&) {  // out of memory, or the limit of threads is reached
    end(object);
    return;
  }
  std::unique_lock lock(running->mutex);
  if (running->ended.wait_for(lock, within, [&] { return running->done; })) {
    lock.unlock();
    thread.join();
    return;
  }
  try {
    report_late(running, what + " did not end within " + std::to_string(within.count()) +
                             " ms; its threads and memory stay until it ends or the process exits");
  } catch (...) {  // NOLINT(bugprone-empty-catch): no memory for the report
  }
  thread.detach();
}

}  // namespace detail

MILLRACE_INLINE unfinished_ends ends_of_process() {
  detail::late_ends& all = detail::late_ends::of_process();
  const std::lock_guard lock(all.mutex);
  unfinished_ends report{.ever = all.ever};
  for (const auto& each : all.now) report.now.push_back(each->line);
  return report;
}

}  // namespace millrace::loader
