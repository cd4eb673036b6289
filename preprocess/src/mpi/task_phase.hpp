// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "mpi/rank_group.hpp"
#include "watch/progress_state.hpp"
#include "watch/summary.hpp"

namespace millrace::preprocess {

class task_progress;

/// What the ranks do in the first half of a job.
struct task_phase_options {
  std::int64_t tasks = 1;
  /// Does a task, on a thread of its own: one at a time on each rank. It is to end soon once `stop`
  /// is not zero, and to throw `stopped` then.
  std::function<run_summary(std::int64_t task, task_progress& progress,
                            const std::atomic<int>& stop)>
      work;
  /// On rank 0: told how far all ranks are together, a few times a second. What it throws ends the
  /// job.
  std::function<void(const progress_state&)> watch;
  /// Not zero: the job is to stop. On any rank.
  const std::atomic<int>* signal = nullptr;
};

/// Has the ranks do all tasks: each takes the next one when it has done one, from rank 0, whose
/// main thread hands them out while another works. When a task fails, or a rank is told to stop,
/// the others stop soon, keeping what they did.
///
/// All ranks call it, and all come back.
/// @throws what this rank's task threw; `stopped` where it stopped for another's sake
void do_tasks(rank_group& ranks, const task_phase_options& options);

}  // namespace millrace::preprocess
