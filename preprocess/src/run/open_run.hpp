// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "input/block_source.hpp"
#include "output/committer.hpp"
#include "process/stage_times.hpp"
#include "record/block_encoder.hpp"
#include "report/metrics.hpp"
#include "report/progress.hpp"
#include "run/checkpointer.hpp"
#include "run/journal.hpp"
#include "run/run_options.hpp"
#include "run/stages.hpp"

namespace millrace::preprocess {

/// Facts about a run. Only `clock` changes during the run.
struct run_context {
  const millrace::tokenizer::tokenizer& tokenizer;
  const run_options& options;
  preprocess::progress& progress;
  run_metrics* metrics;                         ///< null if not requested
  std::vector<std::filesystem::path> prefixes;  ///< of the outputs
  /// Prefixes of the datasets that the stages write: those of the outputs, or others that are
  /// merged to them.
  std::vector<std::filesystem::path> written;
  encoder_options encoding;
  run_identity identity;
  stage_clock clock = {};
};

/// A run whose partial files and journal are open. Reads all inputs, joins the partitions, and
/// completes the files. If the run fails or is stopped, everything that was committed is kept. If
/// nothing was committed, the partial files are removed.
class open_run {
 public:
  /// Opens the partial files.
  ///
  /// @param run, journal  must outlive this object
  /// @param range         the part of the inputs that is still to be read
  /// @param from          the state to resume from; null for a new run
  open_run(run_context& run, journal& journal, const read_range& range, const run_progress* from);

  /// Reads and commits all inputs. Exceptions of the stages pass through.
  ///
  /// @throws stopped  `options.stop` was set.
  void read_all();

  /// Throws if every record was bad, because the flags or files are then probably wrong. Such a run
  /// leaves no new files, and does not change an old output.
  void expect_good_records();

  /// Joins the partitions. Like read_all(), this can be stopped and resumed.
  void join_partitions();

  /// Completes the partial files, and records in the journal that they are complete.
  std::vector<sidecar_set> complete();

  const run_progress& state() const noexcept { return committer_.state(); }
  /// Bytes on disk that this run has read so far; 0 if an earlier run read all.
  std::uint64_t read_bytes() const noexcept { return read_bytes_; }
  progress_state progress_at(std::uint64_t read_bytes, std::int64_t blocks_in_flight) const;

 private:
  void tell(const stage_report& report);
  void give_up();
  void forget_files();
  std::vector<formats::src_input> inputs_of(const run_progress& state) const;
  std::vector<sidecar_set> finish_files();

  run_context& run_;
  journal& journal_;
  read_range range_;
  std::uint64_t read_bytes_ = 0;
  committer committer_;
  checkpointer checkpoints_;
};

}  // namespace millrace::preprocess
