// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include <millrace/dataset/run/batch_steps.hpp>
#include <millrace/dataset/run/edits.hpp>
#include <millrace/dataset/run/sampler.hpp>
#include <millrace/dataset/sample/field_options.hpp>
#include <millrace/export.hpp>
#include <millrace/loader/batch/slot_memory.hpp>
#include <millrace/loader/batch/wanted_fields.hpp>
#include <millrace/loader/io/io_options.hpp>
#include <millrace/loader/io/range_reader.hpp>
#include <millrace/loader/verify/verify_options.hpp>

namespace millrace::loader {

/// Which samples make a micro-batch: Megatron's `--dataloader-type`, and `--full-validation`.
using dataset::sampler_type;

/// Makes a reader of the files; called once a filling thread.
using make_reader_function =
    std::function<std::unique_ptr<range_reader>(const std::vector<data_file>& files)>;

/// What a rank asks of its loader. All ranks give the same values, but for `rank`.
struct loader_options {
  std::int64_t batch_size = 1;        ///< rows of a micro-batch
  std::int64_t seq_len = 0;           ///< tokens of a row; a run has its own: 0, or the same
  std::int64_t rank = 0;              ///< data-parallel rank, 0 .. world_size - 1
  std::int64_t world_size = 1;        ///< data-parallel ranks
  std::int64_t consumed_samples = 0;  ///< where to go on: samples served before, over all ranks
  std::int64_t look_ahead = 2;        ///< micro-batches made before they are asked for

  std::int64_t global_batch_size = 0;  ///< samples of a step; 0: batch_size * world_size
  std::optional<dataset::rampup_batch> rampup = {};  ///< Megatron's --rampup-batch-size
  sampler_type sampler = sampler_type::single;
  bool data_sharding = true;  ///< of cyclic: --no-data-sharding clears it
  /// Of single: samples at the end that are fewer than batch_size * world_size are left out, as
  /// Megatron's trainer does. Else they are one more micro-batch, of fewer rows on the last ranks
  /// that have any, and of none on those behind them: for validation that leaves nothing out. Such
  /// an end may lie in a step, so that nothing can follow it: no edits, no larger run.
  bool drop_last = true;
  std::vector<dataset::edit> edits = {};  ///< of single only; part of the state
  /// Datasets may be of different tokenizers, as their `.meta` say: an id of one is another text in
  /// the next.
  bool allow_several_tokenizers = false;

  host_fields fields = {};
  /// How fields are made: `eod`, `pad`, `reset_position_ids`, `eod_mask_loss`. Whether there is an
  /// extra token is the run's matter, whatever stands here.
  dataset::field_options field_rules = {};
  /// Whether batches carry the boundaries of documents for a device; `fields.cu_seqlens` and packed
  /// rows bring them in any case. Finding them reads the index.
  bool boundaries = false;

  std::int64_t prefetch_samples = 64;  ///< that the reader is told of ahead; 2 batches at least
  std::int64_t threads = 1;            ///< that fill slots
  std::vector<int> cpus = {};    ///< where they run: thread i on cpus[i mod size]; empty: anywhere
  verify_options verify = {};    ///< checksums and ids of what is served
  std::size_t trace_events = 0;  ///< that telemetry keeps for a trace, 40 bytes each
  /// How files are read: which back end, and what it is told. MILLRACE_IO in the environment names
  /// one where this does not.
  io_options io = {};
  make_reader_function reader = {};  ///< another reader than `io` says; empty: none
  slot_memory memory = {};           ///< where batches lie; empty: plain memory

  std::int64_t samples_of_micro_batch() const noexcept { return batch_size * world_size; }
  std::int64_t samples_of_step() const noexcept {
    return global_batch_size == 0 ? samples_of_micro_batch() : global_batch_size;
  }
};

/// The same options.
///
/// @throws config_error  the first one that is out of range; the message names it.
MILLRACE_EXPORT const loader_options& check(const loader_options& options);

/// The steps that options ask for.
inline dataset::batch_steps steps_of(const loader_options& options) {
  return dataset::batch_steps(options.samples_of_step(), options.rampup);
}

/// How the options deal samples to ranks.
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
