// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/memory/home_process.hpp>

/// Ends that take a bounded time. A destructor must wait for threads, and those may be in a read of
/// slow storage, or wait for a device that another rank keeps waiting. So the owner is destroyed on
/// a thread of its own ("mr-end"), and the destructor waits only so long for that thread.
///
/// An end that takes longer is not given up. The thread goes on, and frees everything when the
/// waits are over, or stays until the process exits. Until then nothing that is in use is freed.
namespace millrace::loader {

/// The ends that took longer than they were given. A binding should look at them after it
/// destroyed a loader, and warn.
struct unfinished_ends {
  std::int64_t ever = 0;           ///< how many there were in this process
  std::vector<std::string> now{};  ///< those that have not finished since, one line each
};

/// May be called on any thread.
MILLRACE_EXPORT unfinished_ends ends_of_process();

namespace detail {

/// Calls `end(object)` on a thread of its own, or, if there can be no thread, on this one. Returns
/// when the call has returned, or after `within`.
///
/// @param what  for the report: the object, and what its end may wait for
MILLRACE_EXPORT void end_within(std::chrono::milliseconds within, std::string what,
                                void (*end)(void*), void* object) noexcept;

}  // namespace detail

/// Deletes an object as described above.
template <class T>
void delete_within(std::chrono::milliseconds within, std::string&& what, T* object) noexcept {
  detail::end_within(
      within, std::move(what), [](void* ended) { delete static_cast<T*>(ended); }, object);
}

/// A deleter of smart pointers that does this. In a forked process it does nothing.
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
