// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include <millrace/tokenizer/tokenizer.hpp>

#include "mpi/rank_group.hpp"
#include "run/run_options.hpp"
#include "watch/metrics.hpp"
#include "watch/progress.hpp"
#include "watch/summary.hpp"

namespace millrace::preprocess {

/// Does the work of preprocess_data on all ranks. Each file is byte for byte what run() writes.
///
/// 1. The inputs are divided into tasks, whatever the number of ranks. Each task is a separate run,
///    with its own journal. Its outputs are parts, named as with `--task`.
/// 2. When all tasks are done, the ranks merge the parts: parallel_merge.
/// 3. The whole datasets get their final names; then the parts are removed.
///
/// Rank 0 keeps PREFIX.journal. It records that a job was begun, its identity and its number of
/// tasks. Before the first whole dataset gets its final name, it also records that all are
/// complete. So a job killed at any time leaves either parts to resume from, or complete datasets
/// that only need their names.
///
/// @param options   equal on all ranks, except for `workers`; this rank's signals set `stop`
/// @param tasks     task_count(); tests pass other numbers
/// @param shown     on rank 0: gets the total progress of all ranks, as does `metrics` if not null
/// @return          on rank 0: the summary of all ranks together
/// @throws job_ended  on all ranks, after rank 0 has reported why
run_summary run_job(rank_group& ranks, const tokenizer::tokenizer& tokenizer,
                    const run_options& options, std::int64_t tasks, progress& shown,
                    run_metrics* metrics);

}  // namespace millrace::preprocess
