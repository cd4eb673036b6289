// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/terminal.hpp>
#include <millrace/dataset/detail/packing/packing_algorithm.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/packed_run.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/loader/cluster_plan.hpp>
#include <millrace/loader/detail/io/file_system.hpp>
#include <millrace/loader/detail/simulate/process_memory.hpp>
#include <millrace/loader/detail/simulate/storage_probe.hpp>
#include <millrace/loader/detail/telemetry/report_text.hpp>

#include "command_line.hpp"
#include "inspect.hpp"
#include "run_flags.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

const std::string plan_help =
    std::string(
        R"(usage: inspect_dataset plan PREFIX --order ORDER --seq-length L [RUN FLAGS]
           --nodes N --step-seconds X [OPTIONS]

Computes what a run needs from a cluster: reads, page cache, pinned memory, open
files, time to start, bytes to the GPUs, when each dataset repeats, and the
share of padding in packed rows.

)") +
    run_flags_help +
    R"(  --ranks follows from the cluster, unless you pass it.
  --nodes N, --gpus-per-node N   machines of the job (default: 1, 8)
  --tensor-model-parallel-size N, --pipeline-model-parallel-size N,
  --context-parallel-size N      as in Megatron (default: 1)
  --step-seconds X          time of a training step
  --node-memory-gib X       memory of a node (default: that of this machine)
  --training-memory-gib X   what the training itself needs of it (default: 0)
  --file-system local|shared  whether nodes share the storage (default: shared
                            if the data is on a network file system)
  --probe DIR               measure the storage of DIR: write data there, read
                            it with the loader, and remove it
  --probe-seconds X         time of the probe (default: 10)
  --latency-us N, --mb-per-second X   other storage, per loader, instead
  --look-ahead N, --threads N, --prefetch-samples N   options of the loader
  --reader auto|mmap|pread|io_uring   reader of the loader (default: auto)
  --checkpoint-seconds X, --mtbf-hours X   time to write a checkpoint, and mean
                            time between failures of the whole job: prints the
                            interval of checkpoints by Young and by Daly
  --json                    print one JSON object

  inspect_dataset plan data/web_text_document --order instant --seq-length 4096 \
      --nodes 4 --micro-batch-size 4 --global-batch-size 512 --step-seconds 6 \
      --train-samples 1000000 --probe /mnt/data
)";

constexpr double gib = 1024.0 * 1024 * 1024;

double number_above_0(const command_line& line, const char* flag, double usual) {
  const auto value = line.find<double>(flag);
  if (!value) return usual;
  if (std::isfinite(*value) && *value > 0) return *value;
  throw misuse(fmt::format("--{} {}: expected a number above 0", flag, *value), plan_help);
}

/// While it exists, signals that stop the program wait, so that the probe can remove its files.
class delayed_stop {
 public:
  delayed_stop() {
    sigemptyset(&signals_);
    for (const int each : {SIGHUP, SIGINT, SIGTERM}) sigaddset(&signals_, each);
    (void)::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
  }
  delayed_stop(const delayed_stop&) = delete;
  delayed_stop& operator=(const delayed_stop&) = delete;
  ~delayed_stop() { (void)::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

  bool is_asked() const noexcept {
    sigset_t pending;
    if (::sigpending(&pending) != 0) return false;
    return std::ranges::any_of(std::initializer_list<int>{SIGHUP, SIGINT, SIGTERM},
                               [&](int each) { return sigismember(&pending, each) == 1; });
  }

 private:
  sigset_t signals_{};
  sigset_t before_{};
};

/// All that the answer shows.
struct planned {
  loader::cluster_job job;
  loader::cluster_plan plan;
  std::vector<dataset::packing_report> packing;  ///< of each source; empty without packing
  std::optional<loader::storage_probe> probe;
  std::string probe_folder;
  bool is_shared = false;  ///< all nodes use the same storage
};

std::int64_t data_ranks_of(const command_line& line, const loader::cluster_job& job) {
  loader::parallel_options options = job.layout;
  options.world_size = job.nodes * job.gpus_per_node;
  const std::int64_t ranks = loader::parallel_layout(options).attention().sizes().dp;
  const auto asked = line.find<std::int64_t>("ranks");
  if (asked && *asked != ranks) {
    throw misuse(
        fmt::format("--ranks {}: {} x {} are {} data-parallel ranks at this parallelism; "
                    "leave --ranks out, or change --nodes",
                    *asked, counted(job.nodes, "node"), counted(job.gpus_per_node, "GPU"), ranks),
        plan_help);
  }
  return ranks;
}

/// The job without its run.
loader::cluster_job cluster_of(const command_line& line) {
  loader::cluster_job job;
  const auto count = [&](const char* flag, std::int64_t usual) {
    return count_of(line, flag, 1, plan_help).value_or(usual);
  };
  job.nodes = count("nodes", 1);
  job.gpus_per_node = count("gpus-per-node", 8);
  job.layout.tensor_parallel = count("tensor-model-parallel-size", 1);
  job.layout.pipeline_parallel = count("pipeline-model-parallel-size", 1);
  job.layout.context_parallel = count("context-parallel-size", 1);
  if (!line.find<double>("step-seconds")) {
    throw misuse("--step-seconds is required: the time of a training step, e.g. 4.5", plan_help);
  }
  job.step_seconds = number_above_0(line, "step-seconds", 0);
  const auto here = static_cast<double>(loader::memory_of_machine()) / gib;
  job.node_memory = std::llround(number_above_0(line, "node-memory-gib", here) * gib);
  if (line.find<double>("training-memory-gib")) {
    job.training_memory = std::llround(number_above_0(line, "training-memory-gib", 0) * gib);
  }
  const auto latency = count_of(line, "latency-us", 0, plan_help);
  const double rate = number_above_0(line, "mb-per-second", 0);
  if (latency || rate > 0) {
    job.storage = {.latency_s = static_cast<double>(latency.value_or(0)) * 1e-6,
                   .bytes_per_second = rate * 1e6};
  }
  job.checkpoint_seconds = number_above_0(line, "checkpoint-seconds", 0);
  job.failure_seconds = number_above_0(line, "mtbf-hours", 0) * 3600;
  if ((job.checkpoint_seconds > 0) != (job.failure_seconds > 0)) {
    throw misuse(job.checkpoint_seconds > 0 ? "--checkpoint-seconds requires --mtbf-hours"
                                            : "--mtbf-hours requires --checkpoint-seconds",
                 plan_help);
  }
  return job;
}

loader::loader_options loader_options_of(const command_line& line, const run_configuration& run) {
  loader::loader_options options = loader_options_for(run);
  options.look_ahead = count_of(line, "look-ahead", 1, plan_help).value_or(options.look_ahead);
  options.threads = count_of(line, "threads", 1, plan_help).value_or(options.threads);
  options.prefetch_samples =
      count_of(line, "prefetch-samples", 0, plan_help).value_or(options.prefetch_samples);
  options.io.back_end = reader_name_of(line, plan_help);
  return options;
}

bool is_shared(const command_line& line, const std::filesystem::path& data) {
  if (const auto asked = line.find<std::string>("file-system")) {
    if (*asked != "local" && *asked != "shared") {
      throw misuse("--file-system '" + *asked + "': expected local or shared", plan_help);
    }
    return *asked == "shared";
  }
  return loader::kind_of(data) == loader::file_system_kind::network;
}

void measure(const command_line& line, planned& all) {
  const dataset::run& run = *all.job.run;
  const dataset::indexed_dataset first(run.prefix(0));
  loader::probe_options options;
  options.loader = all.job.options;
  options.seq_len = run.seq_len();
  options.type = first.type();
  options.document_tokens = first.token_count() / std::max<std::int64_t>(1, first.document_count());
  options.loaders = std::min<std::int64_t>(all.plan.node.readers,
                                           std::max(1U, std::thread::hardware_concurrency()));
  options.data_bytes = all.plan.data_bytes;
  options.data_files = run.source_count();
  options.available_memory = static_cast<std::uint64_t>(
      std::max<std::int64_t>(1, all.job.node_memory - all.job.training_memory));
  options.time = std::chrono::duration<double>(number_above_0(line, "probe-seconds", 10));
  const bool shows_progress = ::isatty(STDERR_FILENO) == 1;
  options.progress = [&](const char* what) {
    if (!shows_progress) return;
    command::tell(fmt::format("\r{}: probe of {}: {}\x1b[K", program_name, all.probe_folder, what));
  };
  const delayed_stop stop;
  options.should_stop = [&] { return stop.is_asked(); };
  all.probe = loader::probe_storage(all.probe_folder, options);
  if (shows_progress) command::tell("\r\x1b[K");
  all.job.speed = all.probe->speed;
}

planned plan_of(command_line& line) {
  planned all;
  all.job = cluster_of(line);
  const std::int64_t ranks = data_ranks_of(line, all.job);
  line.values.erase("ranks");
  line.values.insert({"ranks", po::variable_value(boost::any(ranks), false)});
  const auto begin = std::chrono::steady_clock::now();
  const run_configuration run = run_configuration_of(line, plan_help);
  all.job.order_seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  all.job.run = run.order;
  all.job.samples = run.samples;
  all.job.options = loader_options_of(line, run);
  all.is_shared = is_shared(line, run.order->sources().front().bin);
  all.plan = loader::plan_cluster(all.job);
  if (const auto* packed = dynamic_cast<const dataset::packed_run*>(run.order.get())) {
    for (std::int64_t s = 0; s < packed->source_count(); ++s) {
      all.packing.push_back(packed->packing_of(s));
    }
  }
  if (const auto folder = line.find<std::string>("probe")) {
    all.probe_folder = *folder;
    measure(line, all);
    all.plan = loader::plan_cluster(all.job);
  }
  if (all.probe && !all.probe->was_cold) {
    all.plan.warnings.push_back(all.probe_folder +
                                ": the kernel kept the data of the probe in memory, so its times "
                                "are not those of a disk");
  }
  return all;
}

/// "9 d 6 h", "1 h 23 min", "12 min 3 s", "3.2 s".
std::string time_text(double seconds) {
  if (seconds < 60) {
    return loader::detail::duration_text(static_cast<std::int64_t>(std::llround(seconds * 1e9)));
  }
  const std::int64_t s = std::llround(std::min(seconds, 9e15));
  const std::int64_t days = s / 86400;
  const std::int64_t hours = s / 3600 % 24;
  if (days > 0) return fmt::format("{} d {} h", grouped(days), hours);
  if (hours > 0) return fmt::format("{} h {} min", hours, s / 60 % 60);
  return fmt::format("{} min {} s", s / 60, s % 60);
}

std::string rate_text(double bytes_per_second) {
  if (bytes_per_second >= 1e9) return fmt::format("{:.2f} GB/s", bytes_per_second * 1e-9);
  if (bytes_per_second >= 1e5) return fmt::format("{:.2f} MB/s", bytes_per_second * 1e-6);
  return fmt::format("{:.2f} kB/s", bytes_per_second * 1e-3);
}

std::string size_text(double bytes) {
  return loader::detail::bytes_text(std::llround(bytes));
}

std::string count_text(double value) {
  return value < 100 ? fmt::format("{:.1f}", value) : grouped(std::llround(value));
}

std::string speed_text(const planned& all) {
  const loader::cluster_plan& plan = all.plan;
  if (!plan.utilisation) return "storage     not measured; --probe DIR measures it\n";
  const double every = all.job.step_seconds / static_cast<double>(plan.micro_batches);
  std::string text;
  if (all.probe) {
    const loader::loader_speed& speed = all.probe->speed;
    text += fmt::format("probe       {} in {}, reader {}\n            written at {}, read at {}\n",
                        size_text(static_cast<double>(all.probe->bytes)), all.probe_folder,
                        all.probe->reader, rate_text(all.probe->write_bytes_per_second),
                        rate_text(speed.index_bytes_per_second));
    text += fmt::format("            a micro-batch from storage {}, from the page cache {}\n",
                        time_text(speed.cold_s), time_text(speed.warm_s));
    if (speed.loaders > 1) {
      text += fmt::format("            with {} at once, from storage {} each\n",
                          counted(speed.loaders, "loader"), time_text(speed.shared_s));
    }
  }
  text += fmt::format(
      "storage     a micro-batch every {}, needed every {}: utilization {:.1f} %\n"
      "            micro-batches of {} or longer reach 90 %\n",
      time_text(plan.storage_s), time_text(every), 100 * *plan.utilisation,
      time_text(plan.break_even_s));
  return text;
}

std::string sources_text(const planned& all) {
  std::string text = "\ndata        share    epochs  repeats after\n";
  const auto out = std::back_inserter(text);
  for (std::size_t s = 0; s < all.plan.sources.size(); ++s) {
    const loader::planned_source& each = all.plan.sources[s];
    const std::string when =
        !each.repeats_after_s ? "never"
        : each.epochs_are_mixed
            ? fmt::format("{}, or earlier: epochs are mixed", time_text(*each.repeats_after_s))
            : time_text(*each.repeats_after_s);
    fmt::format_to(out, "         {:6.2f} %  {:8.3f}  {}\n  {}\n", 100 * each.share, each.epochs,
                   when, each.prefix.string());
    if (all.packing.empty()) continue;
    const dataset::packing_report& packed = all.packing[s];
    fmt::format_to(out, "  {} in {}, {:.2f} % padding{}\n", grouped(packed.tokens, "token"),
                   grouped(packed.rows, "row"), 100 * packed.padding_share(),
                   packed.left_out == 0
                       ? ""
                       : fmt::format(", {} left out", grouped(packed.left_out, "document")));
  }
  return text;
}

std::string as_text(const planned& all) {
  const loader::cluster_job& job = all.job;
  const loader::cluster_plan& plan = all.plan;
  const loader::node_needs& node = plan.node;
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "job         {} x {}: {} (TP {}, PP {}, CP {})\n", counted(job.nodes, "node"),
                 counted(job.gpus_per_node, "GPU"), counted(plan.data_ranks, "data-parallel rank"),
                 job.layout.tensor_parallel, job.layout.pipeline_parallel,
                 job.layout.context_parallel);
  fmt::format_to(out, "step        {} in {} micro-batch{} per rank, {} every {}\n",
                 grouped(job.options.samples_of_step(), "sample"), grouped(plan.micro_batches),
                 plan.micro_batches == 1 ? "" : "es", grouped(plan.step_tokens, "token"),
                 time_text(job.step_seconds));
  fmt::format_to(out, "run         {}, {}: {}\n", grouped(plan.steps, "step"),
                 grouped(job.samples, "sample"), time_text(plan.run_seconds));
  fmt::format_to(out, "sample      {} in {} requests and {} pages of 4 KiB on average\n",
                 size_text(plan.sample_bytes), count_text(plan.sample_requests),
                 count_text(plan.sample_pages));
  fmt::format_to(out, "\nnode        {} with a loader, of which {} different data\n",
                 grouped(node.loaders, "GPU"),
                 node.readers == 1 ? "1 reads" : fmt::format("{} read", node.readers));
  fmt::format_to(out, "reads       {} samples/s, {} requests/s, {} ({} in whole pages)\n",
                 count_text(node.samples_per_second), count_text(node.requests_per_second),
                 rate_text(node.bytes_per_second), rate_text(node.page_bytes_per_second));
  if (all.is_shared && job.nodes > 1) {
    fmt::format_to(out, "shared      {} nodes read at most {} requests/s, {}\n", grouped(job.nodes),
                   count_text(node.requests_per_second * static_cast<double>(job.nodes)),
                   rate_text(node.page_bytes_per_second * static_cast<double>(job.nodes)));
  }
  fmt::format_to(out, "page cache  reads {} of {} of data, {} of indices; {} free\n",
                 size_text(node.touched_bytes), size_text(static_cast<double>(plan.data_bytes)),
                 size_text(static_cast<double>(plan.index_bytes)),
                 size_text(static_cast<double>(node.free_memory)));
  fmt::format_to(out, "pinned      {}: up to {} of {} per loader\n",
                 size_text(static_cast<double>(node.pinned_bytes)), grouped(plan.slots, "slot"),
                 size_text(static_cast<double>(plan.slot_bytes)));
  fmt::format_to(out, "process     {}, {} open\n", grouped(plan.maps, "memory map"),
                 grouped(plan.open_files, "file"));
  fmt::format_to(out, "start       order {}{}\n", time_text(job.order_seconds),
                 plan.start_seconds > 0
                     ? fmt::format(", with indices from storage {}", time_text(plan.start_seconds))
                     : "");
  fmt::format_to(out, "to a GPU    {} per step, {}\n", size_text(plan.device_bytes_per_step),
                 rate_text(plan.device_bytes_per_second));
  text += speed_text(all);
  text += sources_text(all);
  if (plan.checkpoints) {
    const loader::checkpoint_interval& each = *plan.checkpoints;
    fmt::format_to(out,
                   "\ncheckpoint  every {} by Young, {} by Daly;\n"
                   "            every {}, {:.2f} % of the time is lost\n",
                   time_text(each.young_s), time_text(each.daly_s), grouped(each.steps, "step"),
                   100 * each.lost_share);
  }
  if (!plan.warnings.empty()) text += '\n';
  for (const std::string& each : plan.warnings) {
    text += command::inked(command::ink::strong, "warning: ", command::stdout_has_colors()) + each +
            '\n';
  }
  return text;
}

template <class T>
void write_optional(formats::json_writer& json, const char* key, const std::optional<T>& value) {
  json.key(key);
  if (value) {
    json.value(*value);
  } else {
    json.null();
  }
}

void write_probe(formats::json_writer& json, const planned& all) {
  json.key("probe");
  if (!all.probe) {
    json.null();
    return;
  }
  const loader::storage_probe& probe = *all.probe;
  json.open('{').key("folder").value(all.probe_folder).key("bytes");
  json.value(static_cast<std::int64_t>(probe.bytes)).key("reader").value(probe.reader);
  json.key("was_cold").value(probe.was_cold);
  json.key("write_bytes_per_second").value(probe.write_bytes_per_second);
  json.key("read_bytes_per_second").value(probe.speed.index_bytes_per_second);
  json.key("warm_ms").value(1e3 * probe.speed.warm_s);
  json.key("cold_ms").value(1e3 * probe.speed.cold_s);
  json.key("loaders").value(probe.speed.loaders);
  json.key("shared_ms").value(1e3 * probe.speed.shared_s).close('}');
}

std::string as_json(const planned& all) {
  const loader::cluster_job& job = all.job;
  const loader::cluster_plan& plan = all.plan;
  const loader::node_needs& node = plan.node;
  formats::json_writer json;
  json.open('{').key("nodes").value(job.nodes).key("gpus").value(plan.gpus);
  json.key("data_ranks").value(plan.data_ranks).key("micro_batches").value(plan.micro_batches);
  json.key("global_batch_size").value(job.options.samples_of_step());
  json.key("step_tokens").value(plan.step_tokens).key("step_seconds").value(job.step_seconds);
  json.key("steps").value(plan.steps).key("samples").value(job.samples);
  json.key("run_seconds").value(plan.run_seconds);
  json.key("sample").open('{').key("bytes").value(plan.sample_bytes);
  json.key("requests").value(plan.sample_requests).key("pages").value(plan.sample_pages).close('}');
  json.key("node").open('{').key("loaders").value(node.loaders).key("readers").value(node.readers);
  json.key("samples_per_second").value(node.samples_per_second);
  json.key("requests_per_second").value(node.requests_per_second);
  json.key("bytes_per_second").value(node.bytes_per_second);
  json.key("page_bytes_per_second").value(node.page_bytes_per_second);
  json.key("touched_bytes").value(std::llround(node.touched_bytes));
  json.key("pinned_bytes").value(node.pinned_bytes);
  json.key("page_cache_bytes").value(node.free_memory).close('}');
  json.key("file_system").value(all.is_shared ? "shared" : "local");
  json.key("data_bytes").value(static_cast<std::int64_t>(plan.data_bytes));
  json.key("index_bytes").value(static_cast<std::int64_t>(plan.index_bytes));
  json.key("maps").value(plan.maps).key("open_files").value(plan.open_files);
  json.key("slots").value(plan.slots).key("slot_bytes").value(plan.slot_bytes);
  json.key("device_bytes_per_step").value(plan.device_bytes_per_step);
  json.key("device_bytes_per_second").value(plan.device_bytes_per_second);
  json.key("order_seconds").value(job.order_seconds);
  const auto known = [](double value) { return value > 0 ? std::optional(value) : std::nullopt; };
  write_optional(json, "start_seconds", known(plan.start_seconds));
  write_probe(json, all);
  write_optional(json, "warm_ms", known(1e3 * plan.warm_s));
  write_optional(json, "storage_ms", known(1e3 * plan.storage_s));
  write_optional(json, "break_even_ms", known(1e3 * plan.break_even_s));
  write_optional(json, "utilisation", plan.utilisation);
  json.key("data").open('[');
  for (std::size_t s = 0; s < plan.sources.size(); ++s) {
    const loader::planned_source& each = plan.sources[s];
    json.open('{').key("prefix").value(each.prefix.string()).key("samples").value(each.samples);
    json.key("bytes").value(static_cast<std::int64_t>(each.bin_bytes));
    json.key("share").value(each.share).key("epochs").value(each.epochs);
    write_optional(json, "repeats_after_seconds", each.repeats_after_s);
    json.key("epochs_are_mixed").value(each.epochs_are_mixed);
    if (!all.packing.empty()) {
      const dataset::packing_report& packed = all.packing[s];
      json.key("rows").value(packed.rows).key("tokens").value(packed.tokens);
      json.key("padding").value(packed.padding).key("left_out").value(packed.left_out);
    }
    json.close('}');
  }
  json.close(']').key("checkpoints");
  if (plan.checkpoints) {
    json.open('{').key("young_seconds").value(plan.checkpoints->young_s);
    json.key("daly_seconds").value(plan.checkpoints->daly_s);
    json.key("steps").value(plan.checkpoints->steps);
    json.key("lost_share").value(plan.checkpoints->lost_share).close('}');
  } else {
    json.null();
  }
  json.key("warnings").open('[');
  for (const std::string& each : plan.warnings) json.value(each);
  return json.close(']').close('}').text() + '\n';
}

}  // namespace

int plan(const arguments& args) {
  po::options_description own;
  add_run_flags(own);
  auto add = own.add_options();
  for (const char* flag :
       {"nodes", "gpus-per-node", "tensor-model-parallel-size", "pipeline-model-parallel-size",
        "context-parallel-size", "look-ahead", "threads", "prefetch-samples", "latency-us"}) {
    add(flag, po::value<std::int64_t>());
  }
  for (const char* flag : {"step-seconds", "node-memory-gib", "training-memory-gib",
                           "probe-seconds", "mb-per-second", "checkpoint-seconds", "mtbf-hours"}) {
    add(flag, po::value<double>());
  }
  for (const char* flag : {"probe", "file-system", "reader"}) add(flag, po::value<std::string>());
  auto line = parse_run_options(args, own, plan_help);
  if (!line) return command::exit_done;
  const planned all = plan_of(*line);
  command::answer(line->json ? as_json(all) : as_text(all));
  return command::exit_done;
}

}  // namespace millrace::inspect
