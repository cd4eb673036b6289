// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <optional>
#include <vector>

#include <millrace/io/detail/temporary_folder.hpp>

#include "merge/merge_sidecars.hpp"
#include "merge/merge_target.hpp"
#include "merge/merged_dataset.hpp"
#include "merge/token_budget.hpp"
#include "mpi/rank_group.hpp"

namespace millrace::preprocess {

/// Merges parts to one dataset (the whole) on all ranks. Each rank takes an equal share of
/// consecutive parts. A prefix sum over the ranks gives the offsets of these parts in the whole,
/// and the rank writes the tokens and the index of the parts there. Rank 0 also writes P.meta,
/// P.src and P.bad, which together have about a thousandth of the total size, and before all that
/// the copy of the part in which the run ends at `--max-tokens`: see within_budget().
///
/// Every rank creates one object and calls run(). No file has its final name before
/// publish_dataset(). The destructor removes all files, unless keep() was called.
class parallel_merge {
 public:
  /// @param prefix  prefix of the whole
  /// @param parts   prefixes of the parts, in order; all ranks must be able to read them
  /// @param signal  if `signal` becomes nonzero, the merge stops soon
  parallel_merge(rank_group& ranks, std::filesystem::path prefix,
                 std::vector<std::filesystem::path> parts, const std::atomic<int>& signal)
      : ranks_(ranks),
        prefix_(std::move(prefix)),
        parts_(std::move(parts)),
        stop_(&signal, "all tasks are done, but not yet merged; pass --resume to continue") {}

  /// Merges the parts. When it returns, the files of the whole are durable under their partial
  /// names.
  ///
  /// @throws job_ended  a step failed on some rank, or a rank got a signal to stop.
  void run();

  /// Call keep() and sidecars() only on rank 0, after run(). See merged_dataset.
  void keep() noexcept { whole_->keep(); }
  sidecar_set sidecars() const noexcept { return whole_->sidecars(); }

 private:
  /// The facts about the whole that all ranks need.
  struct shared_plan {
    merged_layout layout;
    bool checksums = false;
  };

  void end_at_budget();
  void measure_own_parts();
  void plan_whole();
  void place_own_parts();
  void finish();

  rank_group& ranks_;
  std::filesystem::path prefix_;
  std::vector<std::filesystem::path> parts_;
  stop_flag stop_;
  std::optional<io::temporary_folder> folder_;  // of the copy; only on rank 0
  std::vector<dataset_extent> extents_;         // sizes of the parts that this rank merges
  dataset_extent before_;                       // total size of the parts of lower ranks
  shared_plan plan_;
  merged_sidecars sidecars_;               // only on rank 0
  std::unique_ptr<merged_dataset> whole_;  // only on rank 0
  std::unique_ptr<merge_target> target_;
};

}  // namespace millrace::preprocess
