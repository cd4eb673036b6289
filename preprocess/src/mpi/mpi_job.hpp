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

/// The work of preprocess_data, done by all ranks: each file byte for byte what run() writes.
///
/// 1. The inputs are cut into tasks, whatever the number of ranks. A task is a run of its own, with
///    a journal, into parts named as those of `--task`.
/// 2. When all tasks are done, the ranks put their parts together: parallel_merge.
/// 3. The wholes get their names; then the parts go.
///
/// PREFIX.journal, which rank 0 keeps, says that a job was begun, with what, and in how many tasks;
/// and that the wholes are complete, before the first gets its name. So a job that was killed at
/// any moment leaves either parts to go on with or wholes to give their names.
///
/// @param options   equal on all ranks, but for `workers`; `stop` is set by this rank's signals
/// @param tasks     task_count(); tests give other numbers
/// @param shown     on rank 0: told how all ranks are together, as is `metrics` if not null
/// @return          on rank 0; of all ranks together
/// @throws job_ended  on all ranks, once rank 0 has told why
run_summary run_job(rank_group& ranks, const tokenizer::tokenizer& tokenizer,
                    const run_options& options, std::int64_t tasks, progress& shown,
                    run_metrics* metrics);

}  // namespace millrace::preprocess
