// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "process/stage_times.hpp"
#include "record/encoded_block.hpp"
#include "watch/progress_state.hpp"
#include "watch/tokenizer_choice.hpp"

namespace millrace::preprocess {

/// One dataset that a run wrote.
struct output_summary {
  std::string prefix;  ///< path without .bin/.idx: what a trainer is given
  std::int64_t sequences = 0;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;
  std::uint64_t bin_bytes = 0;
  std::vector<std::string> files = {};  ///< all that there are of it, by name
};

/// What a finished run did, and what it cost.
struct run_summary {
  record_counts counts;
  std::vector<output_summary> outputs;  ///< one a key
  std::string dtype;
  tokenizer_choice tokenizer = {};
  std::uint64_t input_files = 0;
  std::uint64_t input_bytes = 0;  ///< decompressed
  std::uint64_t read_bytes = 0;   ///< on disk
  double seconds = 0;             ///< wall clock, opening to the last fsync
  double cpu_seconds = 0;         ///< user and system, all threads, the whole process
  std::uint64_t peak_rss_bytes = 0;
  int processes = 1;  ///< that shared the work
  int workers = 0;
  stage_times busy = {};

  std::int64_t tokens() const noexcept;
};

/// How far a run is that has come to its end.
progress_state progress_of(const run_summary& summary);

/// Fills in what the operating system knows of this process.
void measure_process(run_summary& summary);

/// What Megatron's `--data-path` takes to train on what a run wrote: the prefix of the one output
/// with tokens, or of each of several a weight, which is its tokens, and its prefix. Empty where no
/// output has tokens, for then there is nothing to train on.
std::vector<std::string> data_path(const run_summary& summary);

/// "wrote out/web_text_document.bin (1,234 bytes), .idx, .meta and .src", and a line end.
std::string wrote_line(const output_summary& output);

/// `--data-path` with these arguments, quoted for a shell, or that there is nothing to train on.
std::string data_path_line(const std::vector<std::string>& arguments);

/// Some lines for a person; the last is `--data-path` with its arguments, quoted for a shell.
std::string describe(const run_summary& summary);

/// One JSON object, one line, for `--json`.
std::string to_json(const run_summary& summary);

}  // namespace millrace::preprocess
