// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <future>

#include "output/committer.hpp"
#include "run/journal.hpp"

namespace millrace::preprocess {

/// Makes what was committed safe every few seconds, while the run goes on: outputs first, then the
/// journal's word that they are. For the committer's thread.
class checkpointer {
 public:
  using duration = std::chrono::steady_clock::duration;

  /// @param committer, journal  outlive this
  checkpointer(committer& committer, journal& journal, duration period)
      : committer_(committer), journal_(journal), period_(period) {}

  /// Call it after each commit.
  /// @throws what an earlier checkpoint met on its thread
  void update();

  /// Waits for the last checkpoint.
  /// @throws what it met
  void collect();

  /// All that was committed is safe on return.
  void make_safe();

  /// Seconds that syncing took so far, on its own thread.
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
