// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <exception>

namespace millrace::preprocess {

/// The run is to stop, and a giant line, or a text that takes its tokenizer long to normalize, was
/// in its way: whoever was at it gave it up. What the line has brought so far is to be taken back;
/// the next run begins with it, or with the block that it is in.
///
/// No error, so that nobody who handles those takes it for one.
class line_abandoned : public std::exception {
 public:
  const char* what() const noexcept override { return "a long line was left to the next run"; }
};

/// Call it before each piece of a giant line: with gigabytes of it, whoever wants the run to stop
/// would not wait for its end (Slurm kills after 30 s).
///
/// @param stop  not zero: stop; null if nothing can
/// @throws line_abandoned
inline void expect_going_on(const std::atomic<int>* stop) {
  if (stop != nullptr && stop->load() != 0) throw line_abandoned();
}

}  // namespace millrace::preprocess
