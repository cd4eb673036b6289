// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <millrace/dataset/detail/run/batch_steps.hpp>
#include <millrace/dataset/detail/sample/field_options.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/batch/slot_memory.hpp>
#include <millrace/loader/detail/batch/wanted_fields.hpp>
#include <millrace/loader/detail/io/io_options.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/verify/verify_options.hpp>

// Example:
//
//     millrace::loader::loader_options options;
//     options.batch_size = 8;  // rows of a micro-batch
//     options.rank = 3;
//     options.world_size = 64;
//     options.global_batch_size = 1024;  // 2 micro-batches a step
//     options.fields.loss_mask = true;
//     options.field_rules.eod = 50256;
//     options.field_rules.eod_mask_loss = true;

namespace millrace::loader {

/// How samples are put into micro-batches: Megatron's `--dataloader-type` and `--full-validation`.
using dataset::sampler_type;

/// Makes a reader for the files. Called once per filling thread.
using make_reader_function =
    std::function<std::unique_ptr<range_reader>(const std::vector<data_file>& files)>;

/// Options of a loader. All ranks must pass the same values, except for `rank` and `cp_rank`, and
/// for what does not change the samples: threads, memory, fields.
///
///     millrace::loader::loader_options options;
///     options.batch_size = 8;
///     options.rank = 3;
///     options.world_size = 64;
///     options.global_batch_size = 1024;
///     options.fields.loss_mask = true;
struct loader_options {
  std::int64_t batch_size = 1;  ///< rows per micro-batch
  std::int64_t seq_len = 0;     ///< tokens per row; with a run, 0 or the run's value
  std::int64_t rank = 0;        ///< data-parallel rank, 0 .. world_size - 1
  std::int64_t world_size = 1;  ///< data-parallel ranks
  /// Ranks that share each row, Megatron's context parallelism (CP). Each gets two of 2 * CP chunks
  /// of a row or, in packed rows, of each document. Ranks of a context-parallel group have the same
  /// `rank`.
  std::int64_t context_parallel = 1;
  std::int64_t cp_rank = 0;           ///< 0 .. context_parallel - 1
  std::int64_t consumed_samples = 0;  ///< samples served before, over all ranks
  std::int64_t look_ahead = 2;        ///< micro-batches prepared in advance
  /// Micro-batches that the caller may hold at once without reducing the look-ahead. Memory is
  /// allocated for as many as it really holds. 8 are enough for Megatron's 1F1B schedule with up to
  /// 8 pipeline stages; `held_by_stage` gives the number for a stage.
  std::int64_t held = 8;

  std::int64_t global_batch_size = 0;  ///< samples per step; 0: batch_size * world_size
  std::optional<dataset::rampup_batch> rampup = {};  ///< Megatron's --rampup-batch-size
  sampler_type sampler = sampler_type::single;
  bool data_sharding = true;  ///< cyclic sampler only; false: --no-data-sharding
  /// Single sampler only. If true, drop the samples at the end that do not fill batch_size *
  /// world_size, as Megatron's trainer does. If false, serve them as one more micro-batch, for
  /// complete validation: trailing ranks get fewer rows or none. Such a run may end inside a step,
  /// so it allows no edits and cannot be resumed as a longer run.
  bool drop_last = true;
  std::vector<dataset::edit> edits = {};  ///< single sampler only; part of the state
  /// Allow datasets with different tokenizers, according to their `.meta`. The same id then means
  /// different text in different datasets.
  bool allow_several_tokenizers = false;

  host_fields fields = {};
  /// How fields are made: `eod`, `pad`, `reset_position_ids`, `eod_mask_loss`. `extra_token` is
  /// ignored here; the run decides.
  dataset::field_options field_rules = {};
  /// Restart position ids at document boundaries of the index, not by token value. Finding
  /// boundaries reads the index.
  bool positions_at_boundaries = false;
  /// If true, batches carry document boundaries for a device. Batches with `fields.cu_seqlens` or
  /// packed rows always carry them. Finding boundaries reads the index.
  bool boundaries = false;

  std::int64_t prefetch_samples = 64;  ///< samples announced in advance; at least 2 batches
  std::int64_t threads = 1;            ///< threads that fill slots
  std::vector<int> cpus = {};          ///< run thread i on cpus[i mod size]; empty: see near_cpus
  /// If `cpus` is empty: CPUs that all threads may run on; empty: anywhere. A device loader sets
  /// this to the CPUs of the device's NUMA node.
  std::vector<int> near_cpus = {};
  verify_options verify = {};    ///< checks of checksums and ids
  std::size_t trace_events = 0;  ///< events kept for a trace, 40 bytes each; 0: none
  /// How files are read: the back end and its options. The environment variable MILLRACE_IO sets
  /// the back end if `io` does not.
  io_options io = {};
  make_reader_function reader = {};  ///< custom reader instead of `io`; empty: none
  slot_memory memory = {};           ///< memory for batches; empty: plain memory
  /// How long a destructor waits for reads that have begun, 0 to 2147483647. Afterwards the threads
  /// stay behind and free everything when their reads return (`ends_of_process` lists them). Until
  /// then they may use a dataset that was passed by reference.
  std::chrono::milliseconds end_within{10'000};

  std::int64_t samples_of_micro_batch() const noexcept { return batch_size * world_size; }
  std::int64_t samples_of_step() const noexcept {
    return global_batch_size == 0 ? samples_of_micro_batch() : global_batch_size;
  }
};

/// Returns `options` unchanged.
///
/// @throws config_error  an option is out of range; the message names the first one.
MILLRACE_EXPORT const loader_options& check(const loader_options& options);

/// The training steps that these options define.
inline dataset::batch_steps steps_of(const loader_options& options) {
  return dataset::batch_steps(options.samples_of_step(), options.rampup);
}

/// The sampler options that correspond to these options.
inline dataset::sampler_options sampler_of(const loader_options& options) {
  return {.type = options.sampler,
          .batch_size = options.batch_size,
          .world_size = options.world_size,
          .global_batch_size = options.global_batch_size,
          .rampup = options.rampup,
          .data_sharding = options.data_sharding,
          .drop_last = options.drop_last,
          .consumed_samples = options.consumed_samples};
}

}  // namespace millrace::loader
