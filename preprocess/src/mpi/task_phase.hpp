// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string_view>

#include "mpi/rank_group.hpp"
#include "report/progress.hpp"
#include "report/summary.hpp"

namespace millrace::preprocess {

class task_progress;

/// Options of the first phase of a job, which does all tasks. The second phase merges their parts.
struct task_phase_options {
  std::int64_t tasks = 1;
  /// Does one task. Each rank calls this on a separate thread, for one task at a time. When `stop`
  /// becomes nonzero, the function must soon throw `stopped`.
  std::function<run_summary(std::int64_t task, task_progress& progress,
                            const std::atomic<int>& stop)>
      work;
  /// Called a few times per second, on rank 0 only, with the total progress of all ranks. If this
  /// function throws, the job ends.
  std::function<void(const progress_state&)> watch;
  /// If `*signal` becomes nonzero on any rank, the job stops.
  const std::atomic<int>* signal = nullptr;
};

/// Distributes all tasks to all ranks. A rank that finishes a task gets the next task from rank 0.
/// The main thread of rank 0 assigns tasks, while a second thread of rank 0 does tasks. When a task
/// fails or a rank gets a stop signal, all ranks stop soon and keep their finished work.
///
/// Collective: all ranks must call this function, and it returns or throws on each of them. If a
/// task threw on this rank, the function throws the same exception.
///
/// @throws stopped  this rank stopped because of another rank.
void do_tasks(rank_group& ranks, const task_phase_options& options);

/// Progress of a task, readable from another thread. Only rank 0 prints notes about records, and
/// only the first few: notes from all ranks would fill the screen. Notes about the outcome of a
/// task's run are dropped, because the task is only a part of the job.
class task_progress : public progress {
 public:
  /// @param most_notes  maximum number of notes to print; 0 means none
  explicit task_progress(int most_notes) : progress(style::silent, 1, 0), notes_left_(most_notes) {}

  void update(const progress_state& state) override {
    const std::lock_guard lock(mutex_);
    state_ = state;
  }
  void note(std::string_view line) override {
    if (notes_left_-- > 0) progress::note(line);
  }
  void note_outcome(std::string_view) override {}

  progress_state state() const {
    const std::lock_guard lock(mutex_);
    return state_;
  }

 private:
  mutable std::mutex mutex_;
  progress_state state_;
  int notes_left_;
};

}  // namespace millrace::preprocess
