// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "input/byte_block.hpp"
#include "input/input_plan.hpp"
#include "input/task_split.hpp"
#include "process/stop_flag.hpp"
#include "record/block_encoder.hpp"
#include "record/text_key.hpp"

namespace millrace::preprocess {

/// Exit code of a program that a signal stopped.
inline constexpr int exit_stopped = 3;

/// One run of preprocess_data.
struct run_options {
  std::vector<input_file> inputs = {};
  std::filesystem::path output_prefix = {};  ///< `--output-prefix`
  /// `--json-keys` and `--text-key`
  std::vector<text_key> keys = {plain_key("text")};
  std::string tokenizer_type = {};  ///< `--tokenizer-type`, for P.meta
  bool append_eod = false;          ///< `--append-eod`
  int workers = 1;                  ///< `--workers`: threads, all stages together
  /// `--tokenizer-memory`: size of the pretoken cache of each worker's encoder
  std::size_t tokenizer_bytes = tokenizer::tokenizer::default_encoder_bytes;
  bool overwrite = false;  ///< `--overwrite`
  bool resume = false;     ///< `--resume`
  /// `--trust-inputs`: when resuming, treat an input with the same size and modification time as
  /// unchanged, whatever its inode change time is.
  bool trust_inputs = false;
  /// If false, `--resume` of a finished run reads all its inputs, however old they are.
  bool trust_dates = true;
  bad_record_policy on_bad_record = bad_record_policy::fail;
  std::optional<std::int64_t> most_bad_records = std::nullopt;  ///< `--max-bad-records`
  bool checksums = true;                                        ///< not `--no-checksums`
  bool provenance = true;                                       ///< not `--no-provenance`

  std::optional<sentence_options> sentences = std::nullopt;  ///< `--split-sentences`

  /// `--task`: the share of the inputs that this run reads. `output_prefix` is then task_prefix().
  std::optional<task_share> task = std::nullopt;

  /// `--partitions`, or 1 under `--keep-sequential-samples`. Not for a task, which does not know
  /// how many lines precede its own.
  int partitions = 1;

  read_limits limits = {};
  /// Time between checkpoints. Zero: a checkpoint after every block.
  std::chrono::milliseconds checkpoint_period{5000};
  /// If not zero, stop soon and keep the finished work. A signal may set it. May be null.
  const std::atomic<int>* stop = nullptr;

  /// The share of the inputs that this run reads.
  task_share share() const { return task ? *task : whole_share(inputs); }

  /// Most blocks in flight.
  std::size_t most_blocks() const noexcept { return 2 * static_cast<std::size_t>(workers) + 2; }
};

}  // namespace millrace::preprocess
