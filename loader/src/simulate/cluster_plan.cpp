// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/cluster_plan.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/run/batch_steps.hpp>
#include <millrace/dataset/detail/run/sample_text.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/error.hpp>
#include <millrace/loader/detail/io/open_file_limits.hpp>
#include <millrace/loader/detail/pipeline.hpp>
#include <millrace/loader/detail/ranks/rank_role.hpp>
#include <millrace/loader/detail/simulate/utilisation.hpp>
#include <millrace/loader/detail/telemetry/report_text.hpp>
#include <millrace/loader/options.hpp>
#include <millrace/loader/parallel_layout.hpp>

namespace millrace::loader {

namespace detail {

/// A plan while it is being computed: the job, with all that follows from its layout filled in.
class planner {
 public:
  explicit planner(const cluster_job& job)
      : job_(job), options_(job.options), layout_(layout_of(job)) {
    require_above_0(job.step_seconds, "step_seconds", "the time per training step");
    if (job.samples < 1) throw config_error("samples is 0, expected at least 1");
    if (job.node_memory < 0 || job.training_memory < 0) {
      throw config_error("node_memory and training_memory are bytes, expected 0 or more");
    }
    const axis_values sizes = layout_.attention().sizes();
    options_.rank = 0;
    options_.world_size = sizes.dp;
    options_.context_parallel = 1;
    options_.cp_rank = 0;
    context_parallel_ = sizes.cp;
    stages_.document_ends =
        job.run->packed() || options_.boundaries || options_.fields.has_cu_seqlens();
    dataset::check(sampler_of(options_));
    plan_.gpus = layout_.world_size();
    plan_.data_ranks = sizes.dp;
    plan_.micro_batches = options_.samples_of_step() / options_.samples_of_micro_batch();
  }

  cluster_plan plan() && {
    plan_steps();
    average_samples();
    plan_nodes();
    plan_sources();
    plan_files();
    plan_speed();
    if (job_.checkpoint_seconds > 0 || job_.failure_seconds > 0) {
      plan_.checkpoints =
          interval_of_checkpoints(job_.checkpoint_seconds, job_.failure_seconds, job_.step_seconds);
    }
    warn();
    return std::move(plan_);
  }

 private:
  static void require_above_0(double value, const char* name, const char* what) {
    if (std::isfinite(value) && value > 0) return;
    throw config_error(std::string(name) + " is " + decimal(value, 3) + ", expected " + what +
                       ": a number above 0");
  }

  static parallel_layout layout_of(const cluster_job& job) {
    constexpr std::int64_t most = std::int64_t{1} << 24;
    if (job.run == nullptr) throw config_error("run is null, expected the run to plan for");
    if (job.nodes < 1 || job.gpus_per_node < 1 || job.nodes > most / job.gpus_per_node) {
      throw config_error("the job has " + std::to_string(job.nodes) + " nodes with " +
                         std::to_string(job.gpus_per_node) +
                         " GPUs each, expected 1 to 16777216 GPUs");
    }
    parallel_options options = job.layout;
    options.world_size = job.nodes * job.gpus_per_node;
    return parallel_layout(options);
  }

  void plan_steps() {
    const dataset::batch_steps steps = steps_of(options_);
    // As in training, samples at the end that do not fill a step are not counted.
    plan_.steps = options_.drop_last ? std::max<std::int64_t>(1, steps.step_of(job_.samples))
                                     : steps.step_of(job_.samples - 1) + 1;
    plan_.step_tokens = options_.samples_of_step() * job_.run->seq_len();
    plan_.run_seconds = static_cast<double>(plan_.steps) * job_.step_seconds;
  }

  // Seconds from the start of the run until the step that serves the position.
  double seconds_until(std::int64_t position) const {
    return static_cast<double>(steps_of(options_).step_of(position)) * job_.step_seconds;
  }

  // Looks at samples that are spread evenly over the run.
  void average_samples() {
    constexpr std::int64_t most_samples = 2000;
    constexpr std::uint64_t page = 4096;
    const std::int64_t number = std::min(job_.samples, most_samples);
    dataset::sample_text text;
    double requests = 0, bytes = 0, pages = 0;
    for (std::int64_t i = 0; i < number; ++i) {
      const std::int64_t position =
          i * (job_.samples / number) + i * (job_.samples % number) / number;
      job_.run->text_of(position, false, text);
      for (const dataset::row_part& each : text.parts) {
        if (each.from.bytes == 0) continue;
        requests += 1;
        bytes += static_cast<double>(each.from.bytes);
        const std::uint64_t first_page = each.from.offset / page;
        const std::uint64_t last_page = (each.from.offset + each.from.bytes - 1) / page;
        pages += static_cast<double>(last_page - first_page + 1);
      }
    }
    plan_.sample_requests = requests / static_cast<double>(number);
    plan_.sample_bytes = bytes / static_cast<double>(number);
    plan_.sample_pages = pages / static_cast<double>(number);
  }

  // Finds the node with the most readers. A rank that has no loader reads nothing, and the ranks of
  // a tensor-parallel group read the same. A node's ranks are consecutive.
  void plan_nodes() {
    loader_options shared = options_;
    shared.context_parallel = context_parallel_;
    const slot_layout slot = pipeline::layout_of(*job_.run, shared);
    plan_.slot_bytes = static_cast<std::int64_t>(slot.capacity_bytes());
    for (std::int64_t n = 0; n < job_.nodes; ++n) {
      std::set<std::pair<std::int64_t, std::int64_t>> readers;
      std::set<std::int64_t> data_ranks;
      std::int64_t loaders = 0;
      std::int64_t pinned = 0;
      for (std::int64_t g = 0; g < job_.gpus_per_node; ++g) {
        const rank_role role =
            role_of(layout_, n * job_.gpus_per_node + g, job_.run->seq_len(), stages_);
        if (!role.needs.any()) continue;
        const std::int64_t slots = options_.look_ahead + role.held + options_.threads;
        ++loaders;
        pinned += slots * plan_.slot_bytes;
        plan_.slots = std::max(plan_.slots, slots);
        readers.emplace(role.data_rank, role.place.cp);
        data_ranks.insert(role.data_rank);
      }
      node_needs& most = plan_.node;
      most.pinned_bytes = std::max(most.pinned_bytes, pinned);
      most.loaders = std::max(most.loaders, loaders);
      most.data_ranks = std::max(most.data_ranks, std::ssize(data_ranks));
      most.readers = std::max(most.readers, std::ssize(readers));
    }
    const auto cp = static_cast<double>(context_parallel_);
    // A context-parallel rank reads two chunks of each row, so its first and its last range of a
    // chunk are cut.
    const double requests =
        context_parallel_ == 1 ? plan_.sample_requests : (plan_.sample_requests - 1) / cp + 2;
    const double pages = context_parallel_ == 1 ? plan_.sample_pages : plan_.sample_pages / cp + 2;
    node_needs& node = plan_.node;
    const double each = static_cast<double>(options_.samples_of_step()) /
                        static_cast<double>(plan_.data_ranks) / job_.step_seconds;
    node.samples_per_second = each * static_cast<double>(node.readers);
    node.requests_per_second = node.samples_per_second * requests;
    node.bytes_per_second = node.samples_per_second * plan_.sample_bytes / cp;
    node.page_bytes_per_second = node.samples_per_second * pages * 4096;
    const std::int64_t used = options_.boundaries || job_.run->packed() ? 2 * slot.rows() : 0;
    plan_.device_bytes_per_step = static_cast<double>(slot.used_bytes(used, cp > 1 ? used : 0)) *
                                  static_cast<double>(plan_.micro_batches);
    plan_.device_bytes_per_second = plan_.device_bytes_per_step / job_.step_seconds;
  }

  // Number of samples of a source that serve each of its tokens once.
  struct epoch {
    double samples = 0;
    bool is_mixed = false;
  };
  epoch epoch_of(std::int64_t source) const {
    const dataset::sample_round round = job_.run->round_of(source, 0);
    return {static_cast<double>(round.last - round.first) / static_cast<double>(round.times),
            round.times > 1};
  }

  void plan_sources() {
    const dataset::run& run = *job_.run;
    const std::vector<dataset::run_source> files = run.sources();
    for (std::int64_t s = 0; s < run.source_count(); ++s) {
      planned_source& source = plan_.sources.emplace_back();
      source.prefix = run.prefix(s);
      source.bin_bytes = files[static_cast<std::size_t>(s)].bin_bytes;
      std::error_code failed;
      const std::uintmax_t index =
          std::filesystem::file_size(source.prefix.string() + ".idx", failed);
      source.index_bytes = failed ? 0 : index;
      source.samples = run.taken(s, job_.samples);
      source.share = static_cast<double>(source.samples) / static_cast<double>(job_.samples);
      plan_.data_bytes += source.bin_bytes;
      plan_.index_bytes += source.index_bytes;
      if (source.samples == 0) continue;
      const epoch one = epoch_of(s);
      source.epochs = static_cast<double>(source.samples) / one.samples;
      source.epochs_are_mixed = one.is_mixed;
      plan_.node.touched_bytes += static_cast<double>(source.bin_bytes) * touched(source.epochs);
      if (source.epochs > 1) source.repeats_after_s = seconds_until(first_after(s, one.samples));
    }
  }

  // The share of a source that a node reads in a number of epochs, each of which gives it other
  // samples.
  double touched(double epochs) const {
    const double part =
        static_cast<double>(plan_.node.data_ranks) / static_cast<double>(plan_.data_ranks);
    if (options_.sampler == sampler_type::cyclic && options_.data_sharding) {
      return part * std::min(1.0, epochs);
    }
    const double whole = std::floor(epochs);
    return 1 - std::pow(1 - part, whole) * (1 - part * (epochs - whole));
  }

  // The first position before which a source has more than `samples` samples.
  std::int64_t first_after(std::int64_t source, double samples) const {
    std::int64_t low = 0;
    std::int64_t high = job_.samples;
    while (low < high) {
      const std::int64_t middle = low + (high - low) / 2;
      if (static_cast<double>(job_.run->taken(source, middle)) > samples) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return std::min(std::max<std::int64_t>(0, low - 1), job_.samples - 1);
  }

  void plan_files() {
    const open_file_limits limits =
        options_.io.reader.files ? options_.io.reader.files->limits() : filled_in({});
    std::int64_t maps = 0;
    for (const planned_source& each : plan_.sources) {
      maps += static_cast<std::int64_t>((each.bin_bytes + limits.map_bytes - 1) / limits.map_bytes);
    }
    most_maps_ = limits.maps;
    all_maps_ = maps;
    plan_.maps = std::min(maps, limits.maps);
    plan_.open_files = std::min(std::ssize(plan_.sources), limits.files);
    if (job_.speed && job_.speed->index_bytes_per_second > 0) {
      plan_.start_seconds = job_.order_seconds + static_cast<double>(plan_.index_bytes) /
                                                     job_.speed->index_bytes_per_second;
    }
  }

  void plan_speed() {
    const double compute_s = job_.step_seconds / static_cast<double>(plan_.micro_batches);
    if (job_.speed) {
      plan_.warm_s = job_.speed->warm_s;
      // More loaders than were measured share the same storage.
      const double more = std::max(
          1.0, static_cast<double>(plan_.node.readers) / static_cast<double>(job_.speed->loaders));
      plan_.storage_s =
          std::max({job_.speed->warm_s, job_.speed->cold_s, more * job_.speed->shared_s});
    }
    if (job_.storage) plan_.storage_s = std::max(plan_.warm_s, described_s(*job_.storage));
    if (plan_.storage_s == 0) return;
    plan_.break_even_s = passing_utilisation * plan_.storage_s;
    plan_.utilisation = compute_s / std::max(compute_s, plan_.storage_s);
  }

  // Storage loads announced micro-batches at the same time, and passes their bytes on one after
  // another.
  double described_s(const storage_description& storage) const {
    const auto threads = static_cast<double>(options_.threads);
    const double bytes = plan_.sample_bytes * static_cast<double>(options_.batch_size) /
                         static_cast<double>(context_parallel_);
    const double transfer_s = storage.bytes_per_second > 0 ? bytes / storage.bytes_per_second : 0;
    if (options_.prefetch_samples == 0) return (storage.latency_s + transfer_s) / threads;
    const std::int64_t announced = std::max<std::int64_t>(
        2, (options_.prefetch_samples + options_.batch_size - 1) / options_.batch_size);
    return std::max(transfer_s / threads,
                    storage.latency_s / (static_cast<double>(announced) + threads));
  }

  void warn() {
    warn_of_speed();
    warn_of_memory();
    warn_of_files();
    warn_of_repeats();
    if (plan_.checkpoints && plan_.checkpoints->lost_share > 0.1) {
      plan_.warnings.push_back(
          "checkpoints and failures take " + percent(plan_.checkpoints->lost_share) +
          " of the time, even with the best interval: write checkpoints faster, or in the "
          "background");
    }
  }

  void warn_of_speed() {
    if (!plan_.utilisation) return;
    const double compute_s = job_.step_seconds / static_cast<double>(plan_.micro_batches);
    const std::string what = "storage delivers a micro-batch in " + seconds(plan_.storage_s) +
                             ", and a GPU needs one every " + seconds(compute_s);
    if (*plan_.utilisation < passing_utilisation) {
      plan_.warnings.push_back(what + ": GPUs would wait " + percent(1 - *plan_.utilisation) +
                               " of the time; use faster storage, or raise prefetch_samples and "
                               "threads");
    } else if (2 * plan_.storage_s > compute_s) {
      plan_.warnings.push_back(what + ": if anything else uses the same storage, GPUs may wait");
    }
    if (plan_.sample_requests > 8) {
      plan_.warnings.push_back("a sample lies in " + decimal(plan_.sample_requests, 1) +
                               " places of the files on average, each of which is a request: "
                               "documents are short, so the order instant would read less");
    }
  }

  void warn_of_memory() {
    node_needs& node = plan_.node;
    if (job_.node_memory == 0) return;
    const std::int64_t rest = job_.node_memory - job_.training_memory - node.pinned_bytes;
    if (rest <= 0) {
      plan_.warnings.push_back(
          "a node has " + bytes_text(job_.node_memory) + " of memory, but the training needs " +
          bytes_text(job_.training_memory) + " and the loaders " + bytes_text(node.pinned_bytes) +
          ": lower look_ahead or the micro-batch size");
      return;
    }
    node.free_memory = rest;
    const auto index = static_cast<double>(plan_.index_bytes);
    const auto free = static_cast<double>(rest);
    if (index > free) {
      plan_.warnings.push_back("the indices have " + size(index) + ", and a node has " +
                               bytes_text(rest) +
                               " for the page cache: most reads of a sample's place go to storage");
    }
    const bool repeats = std::ranges::any_of(
        plan_.sources, [](const planned_source& each) { return each.epochs > 1; });
    if (repeats && node.touched_bytes + index > free) {
      plan_.warnings.push_back("a node reads " + size(node.touched_bytes) +
                               " of different data, and has " + bytes_text(rest) +
                               " for the page cache: data that repeats comes from storage again");
    }
  }

  void warn_of_files() {
    if (all_maps_ > most_maps_) {
      plan_.warnings.push_back("the data files need " + std::to_string(all_maps_) +
                               " memory maps, and a loader keeps " + std::to_string(most_maps_) +
                               ": it maps files again and again; merge datasets");
    }
    if (plan_.open_files < std::ssize(plan_.sources)) {
      plan_.warnings.push_back(
          "there are " + std::to_string(plan_.sources.size()) + " data files, and a loader keeps " +
          std::to_string(plan_.open_files) +
          " open: raise the limit of open files (ulimit -n), or merge datasets");
    }
    if (plan_.start_seconds > 300) {
      plan_.warnings.push_back("each process takes " + seconds(plan_.start_seconds) +
                               " to start: use inspect_dataset prepare-cache, or the order "
                               "instant, which needs no indices");
    }
  }

  // Beyond about four passes, repeated data teaches little (Muennighoff and others, 2023).
  void warn_of_repeats() {
    constexpr double many = 4;
    for (const planned_source& each : plan_.sources) {
      if (each.epochs <= many) continue;
      plan_.warnings.push_back(each.prefix.string() + " is served " + decimal(each.epochs, 1) +
                               " times: after about 4 times, a model learns little from it");
    }
  }

  static std::string percent(double share) { return decimal(100 * share, 1) + " %"; }
  static std::string seconds(double s) {
    return duration_text(static_cast<std::int64_t>(std::llround(std::min(s, 9e9) * 1e9)));
  }
  static std::string size(double bytes) { return bytes_text(std::llround(bytes)); }

  const cluster_job& job_;
  loader_options options_;  // as on data-parallel rank 0
  parallel_layout layout_;
  std::int64_t context_parallel_ = 1;
  pipeline_options stages_;
  std::int64_t all_maps_ = 0;
  std::int64_t most_maps_ = 0;
  cluster_plan plan_;
};

}  // namespace detail

MILLRACE_INLINE cluster_plan plan_cluster(const cluster_job& job) {
  return detail::planner(job).plan();
}

MILLRACE_INLINE checkpoint_interval interval_of_checkpoints(double checkpoint_seconds,
                                                            double failure_seconds,
                                                            double step_seconds) {
  for (const auto& [value, name] :
       {std::pair(checkpoint_seconds, "checkpoint_seconds"),
        std::pair(failure_seconds, "failure_seconds"), std::pair(step_seconds, "step_seconds")}) {
    if (std::isfinite(value) && value > 0) continue;
    throw config_error(std::string(name) + " is " + detail::decimal(value, 3) +
                       ", expected a number above 0; an interval needs the time of a checkpoint, "
                       "the time between failures and the time of a step");
  }
  const double d = checkpoint_seconds;
  const double m = failure_seconds;
  checkpoint_interval interval;
  interval.young_s = std::sqrt(2 * d * m);
  const double ratio = d / (2 * m);
  interval.daly_s = d < 2 * m ? interval.young_s * (1 + std::sqrt(ratio) / 3 + ratio / 9) - d : m;
  interval.steps =
      std::max<std::int64_t>(1, std::llround(std::min(interval.daly_s / step_seconds, 9e15)));
  const double tau = static_cast<double>(interval.steps) * step_seconds;
  interval.lost_share = std::min(1.0, d / (tau + d) + (tau + d) / (2 * m));
  return interval;
}

}  // namespace millrace::loader
