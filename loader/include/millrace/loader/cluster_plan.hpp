// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <millrace/dataset/run.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/loader/options.hpp>
#include <millrace/loader/parallel_layout.hpp>

// Example:
//
//     // Can 8 nodes with 2 TiB of memory each feed this run?
//     const auto print = [](std::shared_ptr<const millrace::dataset::run> run) {
//       millrace::loader::cluster_job job;
//       job.run = std::move(run);
//       job.samples = 1'000'000;
//       job.options.global_batch_size = 1024;
//       job.nodes = 8;
//       job.layout.tensor_parallel = 4;
//       job.step_seconds = 5;
//       job.node_memory = std::int64_t{2} << 40;
//       for (const std::string& each : millrace::loader::plan_cluster(job).warnings) {
//         std::cout << each << '\n';
//       }
//     };

/// What a run needs from the machines of a cluster: storage, page cache, memory, links to the GPUs.
namespace millrace::loader {

/// How fast a loader makes micro-batches. A time of 0 means that it is unknown.
struct loader_speed {
  double warm_s = 0;  ///< seconds per micro-batch if the data is in the page cache
  double cold_s = 0;  ///< seconds per micro-batch if storage has to deliver the data
  /// Seconds per micro-batch of each of `loaders` loaders that read from storage at the same time.
  double shared_s = 0;
  std::int64_t loaders = 1;
  double index_bytes_per_second = 0;  ///< rate at which storage delivers a file from start to end
};

/// Storage that is not here, so that it cannot be measured.
struct storage_description {
  double latency_s = 0;         ///< of each request, however many are in flight
  double bytes_per_second = 0;  ///< of one loader; 0: no limit
};

/// A run, the machines it will run on, and how fast they train.
struct cluster_job {
  std::shared_ptr<const dataset::run> run;
  std::int64_t samples = 0;  ///< number of samples that the run serves
  /// The options of the loaders. `rank`, `world_size`, `cp_rank`, `context_parallel` and `held`
  /// follow from the layout and are ignored.
  loader_options options;

  std::int64_t nodes = 1;
  std::int64_t gpus_per_node = 8;
  parallel_options layout;       ///< `world_size` follows from the two numbers above and is ignored
  double step_seconds = 0;       ///< time per training step
  std::int64_t node_memory = 0;  ///< bytes of memory of a node; 0: unknown
  std::int64_t training_memory = 0;  ///< bytes of it that the training itself needs
  double order_seconds = 0;          ///< time that the creation of `run` took, if known

  std::optional<loader_speed> speed;           ///< as measured, e.g. by `probe_storage`
  std::optional<storage_description> storage;  ///< slower storage, instead of the measured one

  double checkpoint_seconds = 0;  ///< for which the training stops to write a checkpoint; 0: none
  double failure_seconds = 0;     ///< mean time between failures of the whole job; 0: unknown
};

/// What the run takes from one of its datasets.
struct planned_source {
  std::filesystem::path prefix;
  std::int64_t samples = 0;
  std::uint64_t bin_bytes = 0;
  std::uint64_t index_bytes = 0;
  double share = 0;   ///< of the samples of the run, 0 to 1
  double epochs = 0;  ///< average number of times that the run serves each token
  /// Seconds until the run has taken as many samples as the dataset has in one epoch. From then
  /// on, data repeats. Empty if the run ends before.
  std::optional<double> repeats_after_s;
  /// True if several epochs are shuffled together, as Megatron does, so data repeats earlier.
  bool epochs_are_mixed = false;
};

/// The largest needs of any node. All rates are averages over a step.
struct node_needs {
  std::int64_t loaders = 0;  ///< GPUs with a loader
  /// Loaders that read different data. The others find theirs in the page cache.
  std::int64_t readers = 0;
  std::int64_t data_ranks = 0;       ///< different data-parallel ranks
  double samples_per_second = 0;     ///< read by all readers
  double requests_per_second = 0;    ///< contiguous ranges of files
  double bytes_per_second = 0;       ///< of tokens
  double page_bytes_per_second = 0;  ///< of the pages (4 KiB) that contain these tokens
  double touched_bytes = 0;          ///< different bytes of the data files that it reads in the run
  std::int64_t pinned_bytes = 0;     ///< of all slots of all loaders
  std::int64_t free_memory = 0;      ///< for the page cache; 0 if unknown, or if there is none
};

/// An interval between checkpoints.
struct checkpoint_interval {
  double young_s = 0;  ///< sqrt(2 d M), with d = checkpoint_seconds and M = failure_seconds
  /// sqrt(2 d M) (1 + sqrt(d / 2M) / 3 + (d / 2M) / 9) - d if d < 2M, else M
  double daly_s = 0;
  std::int64_t steps = 0;  ///< the number of whole steps nearest to `daly_s`, at least 1
  /// Share of the time that is spent on checkpoints and on work done twice, with `steps`:
  /// d / (tau + d) for checkpoints, and (tau + d) / 2M for the work since the last checkpoint.
  double lost_share = 0;
};

struct cluster_plan {
  std::int64_t gpus = 0;
  std::int64_t data_ranks = 0;
  std::int64_t micro_batches = 0;  ///< per rank and step
  std::int64_t steps = 0;
  std::int64_t step_tokens = 0;
  double run_seconds = 0;

  double sample_bytes = 0;     ///< average size of a sample's tokens in the files
  double sample_requests = 0;  ///< average number of contiguous ranges of a sample
  double sample_pages = 0;     ///< average number of pages of 4 KiB that contain them

  node_needs node;
  std::uint64_t data_bytes = 0;   ///< of all data files
  std::uint64_t index_bytes = 0;  ///< of all index files
  std::int64_t maps = 0;          ///< memory maps of one loader's process
  std::int64_t open_files = 0;    ///< file descriptors of one loader's process
  std::int64_t slots = 0;         ///< of the loader that has most
  std::int64_t slot_bytes = 0;
  double device_bytes_per_step = 0;  ///< copied to each GPU that has a loader
  double device_bytes_per_second = 0;
  double start_seconds = 0;  ///< creation of the order, and reading all indices; 0 if unknown

  /// Seconds per micro-batch of a loader at full speed; 0 if unknown. `storage_s` is that with all
  /// readers of a node at work.
  double warm_s = 0, storage_s = 0;
  /// Shortest compute time per micro-batch with a utilization of 90 %, data from storage.
  double break_even_s = 0;
  /// Compute time over elapsed time if all data comes from storage, 0 to 1; empty if unknown.
  std::optional<double> utilisation;

  std::vector<planned_source> sources;
  std::optional<checkpoint_interval> checkpoints;
  std::vector<std::string> warnings;  ///< plain sentences, the most important one first
};

/// Computes what a job needs. Looks at the places of at most 2,000 samples, and reads no tokens.
///
/// @throws config_error  a number of `job` is out of range, or the layout is impossible
/// @throws io_error, format_error  as `dataset::run::text_of`
MILLRACE_EXPORT cluster_plan plan_cluster(const cluster_job& job);

/// The interval between checkpoints by Young (1974) and by Daly (2006).
///
/// @throws config_error  a time is not above 0
MILLRACE_EXPORT checkpoint_interval interval_of_checkpoints(double checkpoint_seconds,
                                                            double failure_seconds,
                                                            double step_seconds);

}  // namespace millrace::loader
