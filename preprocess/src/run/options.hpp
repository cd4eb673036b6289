// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <millrace/tokenizer/tokenizer.hpp>

#include "report/metrics.hpp"
#include "run/conversation_setup.hpp"
#include "run/run_options.hpp"
#include "run/worker_trials.hpp"

namespace millrace::preprocess {

/// The programs that use this command line.
enum class program : std::uint8_t {
  alone,     ///< preprocess_data
  together,  ///< preprocess_data_mpi; all its processes get the same flags
};

/// The command line of preprocess_data. If Megatron's program has a flag with the same name, the
/// flag means the same in both programs.
struct program_flags {
  bool help = false;
  bool version = false;
  bool json = false;                                 ///< `--json`: the summary as JSON on stdout
  bool dry_run = false;                              ///< `--dry-run`
  bool workers_told = false;                         ///< `--workers` was given
  metrics_format metrics_as = metrics_format::json;  ///< `--metrics-format`
  std::string help_group = {};                       ///< of `--help GROUP`; empty: the first screen
  std::int64_t log_interval = 1000;                  ///< `--log-interval`
  std::vector<std::string> inputs;                   ///< `--input`, patterns not yet expanded
  std::optional<std::filesystem::path> metrics;      ///< `--metrics`
  std::optional<task_id> task;                       ///< `--task`; `run.task` is set later
  /// `--messages-key`; open_conversations() sets `run.conversations`.
  std::optional<conversation_flags> conversations;
  std::optional<std::int64_t> preview;                  ///< `--preview`: number of a line, from 1
  std::optional<trial_options> trials;                  ///< `--find-optimal-num-workers`
  std::optional<std::filesystem::path> performance_in;  ///< `--performance-dir`
  /// Flags that were given and have no effect. Megatron's program accepts them, too.
  std::vector<std::string> unused = {};
  tokenizer::tokenizer_options tokenizer;
  run_options run;  ///< options of the run, except its `inputs`
  /// The value of `--zstd-memory`, in bytes; nothing if the flag was not given.
  std::optional<std::uint64_t> zstd_window_bytes;
};

/// Parses the command line.
///
/// @throws command::usage_error  the flags are invalid.
program_flags parse_command_line(int argc, const char* const* argv, program which = program::alone);

/// If the flags ask for end-of-document tokens, checks that the tokenizer has such a token.
///
/// @throws config_error  `--append-eod` is given, but the tokenizer has no end-of-document token.
void expect_eod(const tokenizer::tokenizer& tokenizer, const program_flags& line);

/// Returns the columns that a run reads from Parquet files.
table_columns columns_of(const program_flags& line);

/// Returns a note about the flags that have no effect, or nothing if all have one.
std::optional<std::string> note_on_unused(const program_flags& line);

/// The usage line of a program.
const char* usage_of(program which);

/// The text of `--help`, or of `--help GROUP`.
std::string help_text(program which, const std::string& group);

/// The part of `--version` that lists the optional libraries, for both programs.
std::string optional_parts();

}  // namespace millrace::preprocess
