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

/// Options of the first half of a job.
struct task_phase_options {
  std::int64_t tasks = 1;
  /// Does a task, on a separate thread, one at a time on each rank. It must end soon after `stop`
  /// becomes nonzero, and throw `stopped`.
  std::function<run_summary(std::int64_t task, task_progress& progress,
                            const std::atomic<int>& stop)>
      work;
  /// On rank 0: gets the total progress of all ranks, a few times per second. An exception from it
  /// ends the job.
  std::function<void(const progress_state&)> watch;
  /// If not zero on any rank, the job must stop.
  const std::atomic<int>* signal = nullptr;
};

/// Does all tasks on all ranks. A rank that finishes a task gets the next one from rank 0, whose
/// main thread assigns tasks while its other thread works. When a task fails, or a rank gets a stop
/// signal, the other ranks stop soon and keep their finished work.
///
/// Collective: all ranks must call it, and it ends on all of them.
/// @throws what this rank's task threw; `stopped` if it stopped because of another rank
void do_tasks(rank_group& ranks, const task_phase_options& options);

}  // namespace millrace::preprocess
