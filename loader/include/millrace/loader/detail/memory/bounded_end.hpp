// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/memory/home_process.hpp>

/// Destroys objects within a time limit. The destructor of an object with threads must wait for
/// these threads. A thread may be reading slow storage, or waiting for a device that itself waits
/// for another rank. So a separate thread ("mr-end") destroys the object, and the caller waits for
/// that thread only up to a time limit.
///
/// After the time limit, the destruction continues on its thread. It frees the memory as soon as
/// the object's threads have ended. If they never end, the "mr-end" thread stays until the process
/// exits. Memory that is in use is never freed.
namespace millrace::loader {

/// The destructions that exceeded their time limit. After a binding has destroyed a loader, it
/// should check this report and warn.
struct unfinished_ends {
  std::int64_t ever = 0;           ///< number of such destructions in this process so far
  std::vector<std::string> now{};  ///< one line per such destruction that is still running
};

/// Returns this process's report. May be called on any thread.
MILLRACE_EXPORT unfinished_ends ends_of_process();

namespace detail {

/// Calls `end(object)` on a new thread, and waits at most `within` for that call to return. If no
/// thread can be started, makes the call on this thread, without a time limit.
///
/// @param what  names the object in the report, and what its destruction may wait for
MILLRACE_EXPORT void end_within(std::chrono::milliseconds within, std::string what,
                                void (*end)(void*), void* object) noexcept;

}  // namespace detail

/// Deletes an object within a time limit, as described at the top of this file.
template <class T>
void delete_within(std::chrono::milliseconds within, std::string&& what, T* object) noexcept {
  detail::end_within(
      within, std::move(what), [](void* ended) { delete static_cast<T*>(ended); }, object);
}

/// A deleter for smart pointers that calls `delete_within`. In a forked process it does nothing.
struct delete_in_time {
  delete_in_time(std::chrono::milliseconds most, std::string named)
      : within(most), what(std::move(named)) {}

  std::chrono::milliseconds within;
  std::string what;
  home_process home = {};

  template <class T>
  void operator()(T* object) noexcept {
    if (home.is_here()) delete_within(within, std::move(what), object);
  }
};

}  // namespace millrace::loader
