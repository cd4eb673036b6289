// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>

namespace millrace::preprocess {

/// The run is to stop, so a worker abandoned a giant line, or a text that takes long to normalize.
/// The catcher drops what the line has given so far. The next run begins with that line, or with
/// its block.
///
/// Not derived from `error`, so that handlers of errors do not catch it.
class line_abandoned : public std::exception {
 public:
  const char* what() const noexcept override { return "a long line was left to the next run"; }
};

/// Call it before each piece of a giant line, which may have gigabytes: a run must stop soon after
/// a signal (Slurm kills it after 30 s).
///
/// @param stop  not zero: stop; null if nothing can
/// @throws line_abandoned
inline void expect_going_on(const std::atomic<int>* stop) {
  if (stop != nullptr && stop->load() != 0) throw line_abandoned();
}

}  // namespace millrace::preprocess
