// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>

#include <millrace/tokenizer/tokenizer.hpp>

#include "mpi/rank_group.hpp"
#include "report/metrics.hpp"
#include "report/progress.hpp"
#include "report/summary.hpp"
#include "run/run_options.hpp"

namespace millrace::preprocess {

/// Does the work of preprocess_data on all ranks. Each output file is identical, byte for byte, to
/// the file that run() writes in a single process.
///
/// 1. The inputs are divided into tasks; the number of tasks does not depend on the number of
///    ranks. Each task is a separate run with its own journal. The outputs of tasks are called
///    parts. They have the same names as the outputs of `--task`.
/// 2. When all tasks are done, the ranks merge the parts: see parallel_merge.
/// 3. The merged datasets (the whole datasets) get their final names; then the parts are removed.
///
/// Rank 0 keeps PREFIX.journal. When a job begins, the journal records its identity, which includes
/// the number of tasks. When all whole datasets are complete, the journal records that too, before
/// the first of them gets its final name. So a job that is killed at any time leaves either parts
/// to resume from, or complete datasets that only need their final names.
///
/// @param options   equal on all ranks, except for `workers` and `stop`; `*options.stop` becomes
///                  nonzero when this rank gets a stop signal
/// @param tasks     number of tasks: task_count(), or another number in tests
/// @param shown     on rank 0, receives the total progress of all ranks
/// @param metrics   receives the same progress as `shown`; may be null
/// @return          on rank 0, the summary of all ranks together
/// @throws job_ended  on all ranks, after rank 0 has reported the reason
run_summary run_job(rank_group& ranks, const tokenizer::tokenizer& tokenizer,
                    const run_options& options, std::int64_t tasks, progress& shown,
                    run_metrics* metrics);

}  // namespace millrace::preprocess
