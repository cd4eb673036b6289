// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <filesystem>
#include <memory>
#include <vector>

#include "merge/merge_sidecars.hpp"
#include "merge/merge_target.hpp"
#include "merge/merged_dataset.hpp"
#include "mpi/rank_group.hpp"

namespace millrace::preprocess {

/// A dataset that all ranks put together from parts: each rank takes as many neighbours, finds by
/// prefix sums where they lie in the whole, and writes their tokens and index there. Rank 0 writes
/// P.src and P.bad, which are some thousandth of the rest, and P.meta.
///
/// Every rank makes one and calls run(). Nothing shows under the final names before
/// publish_dataset(); a destructor leaves no file, unless keep() was called.
class parallel_merge {
 public:
  /// @param prefix  of the whole
  /// @param parts   prefixes, in order; they lie where all ranks see them
  /// @param signal  not zero: stop soon
  parallel_merge(rank_group& ranks, std::filesystem::path prefix,
                 std::vector<std::filesystem::path> parts, const std::atomic<int>& signal)
      : ranks_(ranks),
        prefix_(std::move(prefix)),
        parts_(std::move(parts)),
        stop_(&signal, "all tasks are done, but not yet merged; pass --resume to continue") {}

  /// On return the whole is safe under its partial names.
  /// @throws job_ended  something failed on some rank, or one was told to stop.
  void run();

  /// On rank 0, after run(): as merged_dataset says.
  void keep() noexcept { whole_->keep(); }
  sidecar_set sidecars() const noexcept { return whole_->sidecars(); }

 private:
  /// What all ranks need to know of the whole.
  struct shared_plan {
    merged_layout layout;
    bool checksums = false;
  };

  void measure_own_parts();
  void plan_whole();
  void place_own_parts();
  void finish();

  rank_group& ranks_;
  std::filesystem::path prefix_;
  std::vector<std::filesystem::path> parts_;
  stop_flag stop_;
  std::vector<dataset_extent> extents_;  // of this rank's parts
  dataset_extent before_;                // the parts of the ranks before
  shared_plan plan_;
  merged_sidecars sidecars_;               // on rank 0
  std::unique_ptr<merged_dataset> whole_;  // on rank 0
  std::unique_ptr<merge_target> target_;
};

}  // namespace millrace::preprocess
