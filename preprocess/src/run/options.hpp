// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <millrace/tokenizer/make_tokenizer.hpp>

#include "run/run_options.hpp"
#include "watch/metrics.hpp"

namespace millrace::preprocess {

/// The command line of preprocess_data. Flags that Megatron's program has mean what they mean
/// there.
struct command_line {
  bool help = false;
  bool version = false;
  bool json = false;                                 ///< `--json`: the summary as JSON on stdout
  std::int64_t log_interval = 1000;                  ///< `--log-interval`
  std::vector<std::string> inputs;                   ///< `--input`, patterns not yet expanded
  bool dry_run = false;                              ///< `--dry-run`
  std::optional<std::filesystem::path> metrics;      ///< `--metrics`
  metrics_format metrics_as = metrics_format::json;  ///< `--metrics-format`
  std::optional<task_id> task;                       ///< `--task`; its share is still to be found
  tokenizer::tokenizer_options tokenizer;
  run_options run;  ///< all but its `inputs`
};

/// @throws command::usage_error  the flags are wrong.
command_line parse_command_line(int argc, const char* const* argv);

inline constexpr const char* usage =
    "usage: preprocess_data --input FILE ... --output-prefix PREFIX [OPTIONS]";

/// What `--help` prints.
std::string help_text();

}  // namespace millrace::preprocess
