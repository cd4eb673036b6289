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

/// A signal stopped the work. The message says what became of the work.
class stopped : public error {
 public:
  using error::error;
};

/// How much to write between two calls of stop_flag::check().
inline constexpr std::size_t written_bytes_at_a_time = std::size_t{4} << 20;

/// The message of a stop: the name of the signal, then what became of the work.
std::string stop_message(int signal, std::string_view consequence);

/// Whether a signal has asked for long work to stop. Any thread.
class stop_flag {
 public:
  /// A flag that is never set.
  stop_flag() = default;

  /// @param signal       0, or the number of the signal that came; outlives this; may be null
  /// @param consequence  what becomes of the work, for the message
  stop_flag(const std::atomic<int>* signal, std::string consequence)
      : signal_(signal), consequence_(std::move(consequence)) {}

  /// Call this before every few MiB of work.
  ///
  /// @throws stopped  a signal came; the message names it.
  void check() const;

 private:
  const std::atomic<int>* signal_ = nullptr;
  std::string consequence_;
};

/// The run was asked to stop, so a worker abandoned a giant line or a text that takes long to
/// normalize. The handler drops what the line has produced so far. The next run resumes at that
/// line or its block.
///
/// Not derived from `error`, so that handlers of errors do not catch it.
class line_abandoned : public std::exception {
 public:
  const char* what() const noexcept override { return "a long line was left to the next run"; }
};

/// Call this before each piece of a giant line, which may have gigabytes. A run must stop soon
/// after a signal (Slurm kills it after 30 s).
///
/// @param stop  nonzero means stop; may be null
/// @throws line_abandoned
inline void expect_going_on(const std::atomic<int>* stop) {
  if (stop != nullptr && stop->load() != 0) throw line_abandoned();
}

}  // namespace millrace::preprocess
