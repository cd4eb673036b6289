// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <future>

#include "output/committer.hpp"
#include "run/journal.hpp"

namespace millrace::preprocess {

/// Makes committed data durable every few seconds during the run: first syncs the outputs, then
/// writes a journal record. Use this class only on the committer's thread.
class checkpointer {
 public:
  using duration = std::chrono::steady_clock::duration;

  /// @param committer, journal  must outlive this object
  checkpointer(committer& committer, journal& journal, duration period)
      : committer_(committer), journal_(journal), period_(period) {}

  /// Starts a checkpoint if it is time for one. Call this after each commit. If an earlier
  /// checkpoint failed, throws its exception.
  void update();

  /// Waits for the last checkpoint to end. If that checkpoint failed, throws its exception.
  void collect();

  /// Makes everything that was committed so far durable. Returns when that is done.
  void make_safe();

  /// Total seconds that the finished checkpoints took.
  double busy_seconds() const noexcept { return busy_seconds_; }

 private:
  using clock = std::chrono::steady_clock;
  bool is_running() const;

  committer& committer_;
  journal& journal_;
  duration period_;
  clock::time_point last_ = clock::now();
  double busy_seconds_ = 0;
  std::future<double> running_;
};

}  // namespace millrace::preprocess
