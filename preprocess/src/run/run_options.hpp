// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "input/byte_block.hpp"
#include "input/input_plan.hpp"
#include "input/task_split.hpp"
#include "process/stop_flag.hpp"
#include "record/block_encoder.hpp"
#include "record/conversation_reader.hpp"
#include "record/duplicates_by.hpp"
#include "record/fim_options.hpp"
#include "record/record_sampler.hpp"
#include "record/text_key.hpp"

namespace millrace::preprocess {

/// Exit code of a program that a signal stopped.
inline constexpr int exit_stopped = 3;

/// One run of preprocess_data.
struct run_options {
  std::vector<input_file> inputs = {};
  std::filesystem::path output_prefix = {};  ///< `--output-prefix`
  /// The keys of `--json-keys` and `--text-key`.
  std::vector<text_key> keys = {plain_key("text")};
  std::string tokenizer_type = {};                ///< `--tokenizer-type`, for P.meta
  std::vector<std::string> tokenizer_flags = {};  ///< the tokenizer's other flags, for P.meta
  bool append_eod = false;                        ///< `--append-eod`
  int workers = 1;  ///< `--workers`: number of threads that all stages share
  /// Number of processors that this process may use, which is the most threads; 0: not known.
  int cores = 0;
  /// `--tokenizer-memory`: largest size in bytes of the pretoken cache of each thread's encoder.
  std::size_t tokenizer_bytes = tokenizer::tokenizer::default_encoder_bytes;
  bool overwrite = false;  ///< `--overwrite`
  bool resume = false;     ///< `--resume`
  /// `--trust-inputs`: when resuming, treat an input with the same size and modification time as
  /// unchanged, even if its inode change time differs.
  bool trust_inputs = false;
  /// If false, resuming a finished run reads all inputs again, even inputs that are older than the
  /// output.
  bool trust_dates = true;
  bad_record_policy on_bad_record = bad_record_policy::fail;
  std::optional<std::int64_t> most_bad_records = std::nullopt;  ///< `--max-bad-records`
  bool checksums = true;                                        ///< false: `--no-checksums`
  bool provenance = true;                                       ///< false: `--no-provenance`

  std::optional<sentence_options> sentences = std::nullopt;  ///< `--split-sentences`
  /// `--messages-key`, which is the only key. Null: texts.
  std::shared_ptr<const conversation_options> conversations = nullptr;

  /// `--task`: the share of the inputs that this run reads. If it is set, `output_prefix` is the
  /// result of task_prefix().
  std::optional<task_share> task = std::nullopt;

  /// `--partitions`, or 1 under `--keep-sequential-samples`. Must be 1 for a task, because a task
  /// does not know how many lines precede its first line.
  int partitions = 1;

  /// `--fim-rate` and its companions. Not for conversations or sentences.
  std::optional<fim_options> fim = std::nullopt;
  std::optional<sample_options> sample = std::nullopt;  ///< `--sample-rate`, `--sample-seed`
  /// `--max-tokens`: the run ends before the first document with which one of its datasets would
  /// have more tokens. A task ends there only because of its own tokens. The merge counts those of
  /// the earlier tasks as well.
  std::optional<std::int64_t> most_tokens = std::nullopt;

  /// `--drop-duplicates`: a document that repeats an earlier one is dropped. There is one key, and
  /// one partition. A task drops nothing, because the merge compares the documents of all tasks.
  std::optional<duplicates_by> drop_duplicates = std::nullopt;
  std::uint64_t duplicates_bytes = default_duplicates_bytes;  ///< `--memory`

  read_limits limits = {};
  /// Time between checkpoints. If it is zero, there is a checkpoint after every block.
  std::chrono::milliseconds checkpoint_period{5000};
  /// If `*stop` becomes nonzero, for example in a signal handler, the run stops soon and keeps the
  /// finished work. May be null.
  const std::atomic<int>* stop = nullptr;

  /// The share of the inputs that this run reads.
  task_share share() const { return task ? *task : whole_share(inputs); }

  bool is_one_of_tasks() const noexcept { return task && task->id.of > 1; }

  /// Whether this run drops duplicates. It then first writes a dataset with all documents, as a
  /// task would, and merges that.
  bool drops_duplicates_itself() const noexcept { return drop_duplicates && !is_one_of_tasks(); }

  /// Whether what is merged gets a P.cuts, with which the merge decides where the run ends.
  bool needs_cuts() const noexcept { return most_tokens && (is_one_of_tasks() || drop_duplicates); }

  /// Whether what is merged gets a P.digests, with which the merge finds documents of equal texts.
  bool needs_digests() const noexcept { return drop_duplicates == duplicates_by::text; }

  /// Number of threads. More threads than processors would displace each other's caches: 16 on 2
  /// processors need 1.6 times the time of 2.
  int threads() const noexcept { return cores == 0 ? workers : std::min(workers, cores); }

  /// Size in bytes of each encoder's pretoken cache: at most that of all inputs, if that is known.
  /// The pages of a larger cache can take longer to get than such a small text takes to encode.
  std::size_t encoder_cache_bytes() const noexcept {
    std::uint64_t text_bytes = std::uint64_t{1} << 20;  // too little to matter
    for (const input_file& file : inputs) {
      const bool is_plain = file.regular && file.compressed_with == compression::none;
      if (!is_plain || text_bytes >= tokenizer_bytes) return tokenizer_bytes;
      text_bytes += file.size_bytes;
    }
    return std::min<std::uint64_t>(tokenizer_bytes, text_bytes);
  }

  /// Maximum number of blocks in flight.
  std::size_t most_blocks() const noexcept { return 2 * static_cast<std::size_t>(threads()) + 2; }
};

/// Returns the number in the environment variable `name`, or `usual` if the variable is not set.
/// With such variables, tests use a small corpus to run code for large inputs.
inline std::size_t test_number(const char* name, std::size_t usual) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::strtoull(text, nullptr, 10) : usual;
}

inline void take_test_hooks(run_options& run) {
  run.limits.block_bytes = test_number("MILLRACE_TEST_BLOCK_BYTES", run.limits.block_bytes);
  run.limits.giant_bytes = test_number("MILLRACE_TEST_GIANT_BYTES", run.limits.giant_bytes);
  const auto period = static_cast<std::size_t>(run.checkpoint_period.count());
  run.checkpoint_period =
      std::chrono::milliseconds(test_number("MILLRACE_TEST_CHECKPOINT_MS", period));
}

}  // namespace millrace::preprocess
