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

inline constexpr std::int64_t most_held = 131072;  ///< the limit of `loader_options::held`

/// How samples are grouped into micro-batches. Corresponds to Megatron's `--dataloader-type` and
/// `--full-validation`.
using dataset::sampler_type;

/// A function that makes a reader for the files. It is called once per thread that fills slots.
using make_reader_function =
    std::function<std::unique_ptr<range_reader>(const std::vector<data_file>& files)>;

/// Options of a loader. Only `rank`, `cp_rank` and options that do not affect the samples (such as
/// threads, memory and fields) may differ between ranks.
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
  std::int64_t world_size = 1;  ///< number of data-parallel ranks
  /// Number of ranks that share each row: Megatron's context parallelism (CP). Each row is divided
  /// into 2 * CP chunks, and each rank gets two of them. In packed rows, each document is divided
  /// in this way. Ranks of a context-parallel group have the same `rank`.
  std::int64_t context_parallel = 1;
  std::int64_t cp_rank = 0;           ///< 0 .. context_parallel - 1
  std::int64_t consumed_samples = 0;  ///< samples that all ranks together served earlier
  std::int64_t look_ahead = 2;        ///< number of micro-batches prepared in advance
  /// Number of micro-batches that the caller may hold at once without reducing the look-ahead, 1 to
  /// `most_held`.
  /// Memory for them is allocated only when the caller really holds that many, unless `memory` is
  /// set. 8 is enough for Megatron's 1F1B schedule with up to 8 pipeline stages; `held_by_stage`
  /// computes the number for a stage.
  std::int64_t held = 8;

  std::int64_t global_batch_size = 0;  ///< samples per step; 0: batch_size * world_size
  std::optional<dataset::rampup_batch> rampup = {};  ///< Megatron's --rampup-batch-size
  sampler_type sampler = sampler_type::single;
  bool data_sharding = true;  ///< cyclic sampler only; false: --no-data-sharding
  /// Single sampler only: what happens to the last samples if fewer than batch_size * world_size
  /// are left. If true, they are dropped, as in Megatron's trainer. If false, they are served as
  /// one more micro-batch, so that validation is complete; trailing ranks get fewer rows or none.
  /// Without `drop_last`, a run may end inside a step, so it allows no edits and cannot be resumed
  /// as a longer run.
  bool drop_last = true;
  std::vector<dataset::edit> edits = {};  ///< single sampler only; part of the state
  /// If true, datasets may have different tokenizers, according to their `.meta` files. The same
  /// token id may then mean different text in different datasets.
  bool allow_several_tokenizers = false;

  host_fields fields = {};
  /// How fields are computed: `eod`, `pad`, `reset_position_ids`, `eod_mask_loss`. `extra_token` is
  /// ignored here; the run decides.
  dataset::field_options field_rules = {};
  /// How masks of the datasets enter `fields.loss_mask`. A dataset without a mask has a loss
  /// everywhere.
  mask_alignment masks = mask_alignment::label;
  /// If true, position ids restart at the document boundaries in the index, and
  /// `field_rules.reset_position_ids` has no effect. The index is read to find the boundaries.
  bool positions_at_boundaries = false;
  /// If true, batches contain document boundaries for a device. Batches with `fields.cu_seqlens` or
  /// packed rows always contain them. The index is read to find the boundaries.
  bool boundaries = false;
  /// If true, and a dataset has a mask, batches contain for a device where the loss counts. Batches
  /// with `fields.loss_mask` contain it in any case.
  bool mask_bits = false;

  std::int64_t prefetch_samples = 64;  ///< samples to prefetch, at least 2 batches; 0: none
  std::int64_t threads = 1;            ///< number of threads that fill slots
  /// Run filling thread i on cpus[i mod size]; empty: see `near_cpus`. A filling thread may start
  /// threads that read files, which then run on its CPU, too, unless `io.reader.threads` is set.
  std::vector<int> cpus = {};
  /// The CPUs that all threads may run on if `cpus` is empty. If this list is empty too, threads
  /// run anywhere. A device loader fills an empty list with the CPUs of the device's NUMA node.
  std::vector<int> near_cpus = {};
  verify_options verify = {};    ///< how checksums and token ids are verified
  std::size_t trace_events = 0;  ///< events kept for a trace, 40 bytes each; 0: none
  /// How files are read: the back end and its options. If `io` names no back end, the environment
  /// variable `MILLRACE_IO` does.
  io_options io = {};
  make_reader_function reader = {};  ///< makes custom readers, which replace `io`; empty: use `io`
  slot_memory memory = {};           ///< allocates memory for batches; empty: plain memory
  /// How long the destructor waits for reads that have begun, 0 to 2147483647 ms. If they take
  /// longer, the threads keep running after the destructor has returned, and `ends_of_process`
  /// lists them. They free everything when their reads return. Until then, they may use a dataset
  /// that was passed by reference.
  std::chrono::milliseconds end_within{10'000};

  std::int64_t samples_of_micro_batch() const noexcept { return batch_size * world_size; }
  std::int64_t samples_of_step() const noexcept {
    return global_batch_size == 0 ? samples_of_micro_batch() : global_batch_size;
  }
};

/// Returns `options` unchanged.
///
/// @throws config_error  an option is out of range; the message names the first such option
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
