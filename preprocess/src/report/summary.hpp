// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include <millrace/command/text.hpp>
#include <millrace/tokenizer/tokenizer.hpp>

#include "process/stage_times.hpp"
#include "record/encoded_block.hpp"
#include "report/progress.hpp"

namespace millrace::preprocess {

/// The tokenizer that a run uses, for its summary.
struct tokenizer_choice {
  std::string type;                ///< value of `--tokenizer-type`
  std::vector<std::string> files;  ///< files and folders, as given by the user
};

inline tokenizer_choice choice_of(const tokenizer::tokenizer_options& options) {
  tokenizer_choice choice{.type = options.type, .files = {}};
  for (const std::filesystem::path* path :
       {&options.model, &options.vocab_file, &options.merge_file}) {
    if (!path->empty()) choice.files.push_back(path->string());
  }
  return choice;
}

/// Returns a text such as "GPT2BPETokenizer, vocab.json, merges.txt".
inline std::string text_of(const tokenizer_choice& choice) {
  std::string text = choice.type;
  for (const std::string& file : choice.files) text += ", " + command::one_line(file);
  return text;
}

/// One dataset that a run wrote.
struct output_summary {
  std::string prefix;  ///< path without .bin/.idx, as passed to a trainer
  std::int64_t sequences = 0;
  std::int64_t documents = 0;
  std::int64_t empty_documents = 0;  ///< documents without tokens
  std::int64_t tokens = 0;
  std::optional<std::int64_t> trained = std::nullopt;  ///< trained tokens, if there is a P.mask
  std::uint64_t bin_bytes = 0;
  std::vector<std::string> files = {};  ///< all its files, sorted by name
};

/// The results of a finished run, and the time and memory that it took.
struct run_summary {
  record_counts counts;
  std::int64_t duplicates = 0;          ///< documents that `--drop-duplicates` left out
  std::vector<output_summary> outputs;  ///< one per key
  /// Where the run ended because of `--max-tokens`, e.g. "byte 7 of a.jsonl".
  std::optional<std::string> stopped_before = std::nullopt;
  std::string dtype;
  tokenizer_choice tokenizer = {};
  std::uint64_t input_files = 0;
  std::uint64_t input_bytes = 0;  ///< size after decompression
  std::uint64_t read_bytes = 0;   ///< size on disk; of all inputs, if an earlier run read them
  double seconds = 0;             ///< wall time from opening to the last fsync
  double cpu_seconds = 0;         ///< user and system time of the whole process
  std::uint64_t peak_rss_bytes = 0;
  int processes = 1;  ///< processes that shared the work
  int workers = 0;
  stage_times busy = {};

  std::int64_t tokens() const noexcept;           ///< of all outputs
  std::int64_t empty_documents() const noexcept;  ///< of all outputs
};

/// The progress of a finished run.
progress_state progress_of(const run_summary& summary);

/// Sets the CPU time and the peak memory of this process in `summary`.
void measure_process(run_summary& summary);

/// Returns the arguments for Megatron's `--data-path`. For one output, this is its prefix. For
/// several, these are (weight, prefix) pairs; the weight is the token count. Omits outputs without
/// tokens. The result is empty if no output has tokens.
std::vector<std::string> data_path(const run_summary& summary);

/// Returns the line that says where a run ended at `--max-tokens`.
std::string budget_line(std::string_view place);

/// Returns a line such as "wrote out/web_text_document.bin (1,234 bytes), .idx, .meta and .src".
std::string wrote_line(const output_summary& output);

/// Returns the line "--data-path ARGUMENTS", with the arguments quoted for a shell. If `arguments`
/// is empty, the line says that there is nothing to train on.
std::string data_path_line(const std::vector<std::string>& arguments);

/// Returns the summary as text. Its last line is the result of data_path_line().
std::string describe(const run_summary& summary);

/// Returns the summary as one JSON object on one line, for `--json`.
std::string to_json(const run_summary& summary);

}  // namespace millrace::preprocess
