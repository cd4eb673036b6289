// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mutex>
#include <string_view>

#include "watch/progress.hpp"

namespace millrace::preprocess {

/// Progress of a task, readable from another thread. Only rank 0 prints notes about records, and
/// only the first few, as examples: notes from all ranks would fill the screen. A task is only a
/// part of the job, so its notes about the outcome of its run are dropped.
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
