// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <millrace/error.hpp>

namespace millrace::preprocess {

/// Thrown when a signal stopped the work. The message says whether the work is lost or can be
/// resumed.
class stopped : public error {
 public:
  using error::error;
};

/// Number of bytes to write between two calls of stop_flag::check().
inline constexpr std::size_t written_bytes_at_a_time = std::size_t{4} << 20;

/// The message of `stopped`: the name of the signal, then `consequence`, which says whether the
/// work is lost or can be resumed.
std::string stop_message(int signal, std::string_view consequence);

/// Checks whether a signal has asked long work to stop. Any thread may use it.
class stop_flag {
 public:
  /// A flag that is never set.
  stop_flag() = default;

  /// @param signal       where to read the number of the received signal (0: none yet); must
  ///                     outlive this object; may be null
  /// @param consequence  text for the message that says whether the stopped work is lost or can be
  ///                     resumed
  stop_flag(const std::atomic<int>* signal, std::string consequence)
      : signal_(signal), consequence_(std::move(consequence)) {}

  /// Call this before every few MiB of work.
  ///
  /// @throws stopped  a signal was received; the message names it.
  void check() const;

 private:
  const std::atomic<int>* signal_ = nullptr;
  std::string consequence_;
};

/// Thrown when a worker abandons a line because the run was asked to stop. The line is a giant
/// line, or has a text that takes long to normalize. The handler drops the line's output so far.
/// The next run resumes at that line or at the block that contains it.
///
/// Not derived from `error`, so that handlers of errors do not catch it.
class line_abandoned : public std::exception {
 public:
  const char* what() const noexcept override { return "a long line was left to the next run"; }
};

/// Call this before each piece of a giant line. Such a line can be gigabytes long, but a run must
/// stop soon after a signal (Slurm kills it after 30 s).
///
/// @param stop  if `*stop` is not zero, the run must stop; may be null
/// @throws line_abandoned  `*stop` is not zero.
inline void expect_going_on(const std::atomic<int>* stop) {
  if (stop != nullptr && stop->load() != 0) throw line_abandoned();
}

/// Catches SIGHUP, SIGINT, SIGTERM and SIGUSR1 (Slurm sends SIGUSR1 before it takes a node away).
/// Call this once, before the process has other threads.
///
/// The first signal does not end the process. Instead, it changes the returned value from 0 to the
/// signal's number. If SIGINT, SIGTERM or SIGUSR1 arrives a second time, it ends the process at
/// once. A second SIGHUP does not end it: when a terminal closes, the shell and the kernel may each
/// send a SIGHUP.
///
/// Signals that were ignored when the program started stay ignored. `nohup` ignores SIGHUP, for
/// example, and a shell script ignores SIGINT for its background jobs.
const std::atomic<int>& catch_stop_signals();

}  // namespace millrace::preprocess
