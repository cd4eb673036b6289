// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "run/run_options.hpp"

/// `--find-optimal-num-workers`: measures how fast a run would be with several numbers of workers.
namespace millrace::preprocess {

struct trial_options {
  /// `--workers-to-check`; not empty.
  std::vector<int> workers = {};
  std::int64_t documents = 100'000;  ///< `--max-documents`: number of documents of each trial
  int rounds = 3;                    ///< number of trials for each number of workers
  /// `--tokenizer-memory`. Nothing: what a run with as many workers would have.
  std::optional<std::size_t> tokenizer_bytes = std::nullopt;
};

/// The trials with one number of workers.
struct worker_trial {
  int workers = 0;
  std::vector<double> documents_per_second = {};  ///< one per round

  double median() const;
};

struct trial_report {
  std::vector<worker_trial> trials;  ///< the fastest first
  std::int64_t documents = 0;        ///< number of documents that each trial made
  double least_seconds = 0;          ///< duration of the shortest trial
};

/// Without `--workers-to-check`: the powers of two below the number of processors, and this number.
std::vector<int> usual_workers(int cores);

/// Begins the run again and again with each number of workers, and ends it after some documents, or
/// where the inputs end. The trials read the real inputs and write to a temporary folder beside the
/// output prefix, so their disk is that of the run. At the end, this folder is removed. Rounds
/// alternate their direction, so that a change of the machine's speed affects all numbers alike.
///
/// @param run   without a task; its number of workers is not used
/// @param tell  receives a line about each trial
/// @throws config_error  an input is a pipe, which can be read only once.
/// @throws stopped       `run.stop` was set.
/// @throws error         as preprocess::run
trial_report try_workers(const tokenizer::tokenizer& tokenizer, const run_options& run,
                         const trial_options& options,
                         const std::function<void(const std::string&)>& tell);

/// Returns a table, and the number of workers to use.
std::string describe(const trial_report& report);

/// Returns the report as one JSON object on one line.
std::string to_json(const trial_report& report);

/// `--performance-dir`: writes FOLDER/N_workers.json for each number N, as Megatron's program does:
/// an object with N and the list of its rates.
///
/// @throws io_error  a file cannot be written.
void write_performance(const trial_report& report, const std::filesystem::path& folder);

}  // namespace millrace::preprocess
