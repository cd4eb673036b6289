// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/io/detail/residency.hpp>
#include <millrace/io/file_ops.hpp>
#include <millrace/loader/detail/io/make_reader.hpp>
#include <millrace/loader/detail/io/throttled_reader.hpp>
#include <millrace/loader/detail/simulate/utilisation.hpp>
#include <millrace/loader/detail/telemetry/report_text.hpp>

#include "command_line.hpp"
#include "inspect.hpp"
#include "run_flags.hpp"
#include "simulated_run.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

const std::string simulate_help =
    std::string(
        R"(usage: inspect_dataset simulate PREFIX --order ORDER --seq-length L [RUN FLAGS]
           --compute-ms X [OPTIONS]

Serves a run to simulated ranks that compute X ms per step of one micro-batch.
Prints the accelerator utilization by the formula of MLPerf Storage, the step
time that reaches 90 %, waits, memory, and a checksum of each rank's data.

)") +
    run_flags_help +
    R"(  --compute-ms X            compute time per step, reading all bytes included
  --steps N                 micro-batches per rank (default: 100)
  --full-speed-steps N      extra steps without compute (default: 100)
  --look-ahead N, --threads N, --prefetch-samples N   options of the loader
  --reader auto|mmap|pread|io_uring   reader of the loader (default: auto)
  --latency-us N, --jitter-us N, --mb-per-second X   slower storage, per thread
  --no-prefetch             start the latency at the read, not at the prefetch
  --cold                    drop the data from the page cache first
  --processes               run each rank as a process, not as a thread
  --sync                    let all ranks wait for each other at every step
  --json                    print one JSON object: utilisation, passes, ...

  inspect_dataset simulate data/web_text_document --order instant \
      --seq-length 4096 --micro-batch-size 8 --compute-ms 120 --cold
)";

/// The requested simulation.
struct request {
  simulated_run run;
  double compute_ms = 0;
  std::string reader;
  bool cold = false;
};

/// The data files of a run.
struct stored_data {
  std::vector<std::string> files;
  std::int64_t bytes = 0;
  std::optional<double> resident;  ///< share in the page cache, if the kernel reports it
};

std::optional<double> number_of(const command_line& line, const char* flag) {
  const auto value = line.find<double>(flag);
  if (value && !(std::isfinite(*value) && *value >= 0)) {
    throw misuse(fmt::format("--{} {}: expected 0 or more", flag, *value), simulate_help);
  }
  return value;
}

std::optional<loader::throttle> throttle_of(const command_line& line) {
  const auto latency = count_of(line, "latency-us", 0, simulate_help);
  const auto jitter = count_of(line, "jitter-us", 0, simulate_help);
  const auto rate = number_of(line, "mb-per-second");
  if (rate && *rate == 0) {
    throw misuse("--mb-per-second 0: expected a number above 0", simulate_help);
  }
  if (!latency && !jitter && !rate) {
    if (!line.values["no-prefetch"].as<bool>()) return std::nullopt;
    throw misuse("--no-prefetch requires --latency-us, --jitter-us or --mb-per-second",
                 simulate_help);
  }
  loader::throttle storage;
  storage.latency = std::chrono::microseconds(latency.value_or(0));
  storage.jitter = std::chrono::microseconds(jitter.value_or(0));
  storage.bytes_per_second = rate.value_or(0) * 1e6;
  storage.sees_prefetch = !line.values["no-prefetch"].as<bool>();
  return storage;
}

/// Returns the request without the run itself, because each rank creates its own run.
request request_of(const command_line& line, const run_configuration& what) {
  const dataset::sampler_options& ranks = what.sampler;
  request asked;
  const auto compute = number_of(line, "compute-ms");
  if (!compute) {
    throw misuse("--compute-ms is required: the compute time per micro-batch, in ms",
                 simulate_help);
  }
  asked.compute_ms = *compute;
  asked.cold = line.values["cold"].as<bool>();
  asked.reader = reader_name_of(line, simulate_help);

  simulated_run& run = asked.run;
  run.ranks = ranks.world_size;
  run.as = line.values["processes"].as<bool>() ? ranks_as::processes : ranks_as::threads;
  run.wait_for_each_other = line.values["sync"].as<bool>();
  if (run.wait_for_each_other && run.as == ranks_as::processes) {
    throw misuse(
        "--sync and --processes exclude each other; only ranks that are threads can wait for each "
        "other",
        simulate_help);
  }
  run.steps.steps = count_of(line, "steps", 2, simulate_help).value_or(100);
  run.steps.full_speed_steps = count_of(line, "full-speed-steps", 0, simulate_help).value_or(100);
  run.steps.compute = std::chrono::nanoseconds(std::llround(*compute * 1e6));

  loader::loader_options options = loader_options_for(what);
  options.fields = loader::no_host_fields;
  options.look_ahead = count_of(line, "look-ahead", 1, simulate_help).value_or(options.look_ahead);
  options.threads = count_of(line, "threads", 1, simulate_help).value_or(options.threads);
  options.prefetch_samples =
      count_of(line, "prefetch-samples", 0, simulate_help).value_or(options.prefetch_samples);
  const auto storage = throttle_of(line);
  run.options = [options, storage, reader = asked.reader](std::int64_t rank) {
    loader::loader_options own = options;
    own.rank = rank;
    own.reader = [=](const std::vector<loader::data_file>& files) {
      loader::io_options io;
      io.back_end = reader;
      auto inner = loader::make_reader(files, io);
      if (!storage) return inner;
      loader::throttle slow = *storage;
      slow.seed += static_cast<std::uint64_t>(rank);
      return std::unique_ptr<loader::range_reader>(
          std::make_unique<loader::throttled_reader>(std::move(inner), slow));
    };
    return own;
  };
  run.run = [line] { return run_configuration_of(line, simulate_help); };
  return asked;
}

stored_data data_of(const run_configuration& run, bool drop) {
  stored_data data;
  for (std::int64_t s = 0; s < run.order->source_count(); ++s) {
    data.files.push_back(run.order->prefix(s).string() + ".bin");
  }
  double resident = 0;
  bool known = true;
  for (const std::string& path : data.files) {
    const io::unique_fd fd = io::open_read_only(path);
    const auto bytes = static_cast<std::int64_t>(io::regular_file_size(fd, path));
    data.bytes += bytes;
    // Dirty pages cannot be dropped, so write them to disk first.
    if (drop &&
        (::fdatasync(fd.get()) != 0 || ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED) != 0)) {
      throw config_error("--cold: the kernel did not drop " + path + " from the page cache");
    }
    const auto share = io::resident_share(fd.get(), 0, static_cast<std::uint64_t>(bytes));
    known = known && share.has_value();
    resident += share.value_or(0) * static_cast<double>(bytes);
  }
  if (known && data.bytes > 0) data.resident = resident / static_cast<double>(data.bytes);
  return data;
}

/// Caveats to print with the results.
std::vector<std::string> notes_of(const request& asked, const stored_data& data) {
  std::vector<std::string> notes;
  if (asked.run.steps.steps < 500) {
    notes.push_back(fmt::format("{} steps; MLPerf Storage requires 500", asked.run.steps.steps));
  }
  if (data.bytes / 5 < loader::memory_of_machine()) {
    notes.push_back(fmt::format(
        "the data has {}, less than five times the memory, so the page cache may hold it",
        loader::detail::bytes_text(data.bytes)));
  }
  return notes;
}

/// Summary over all ranks.
struct summary {
  double utilisation = 1;          ///< lowest of all ranks
  std::int64_t break_even_ns = 0;  ///< of the slowest loader
  loader::process_memory memory;   ///< of all processes
};

summary summary_of(const request& asked, const std::vector<rank_outcome>& outcomes) {
  summary all;
  for (const rank_outcome& each : outcomes) {
    all.utilisation = std::min(all.utilisation, each.times.utilisation());
    all.break_even_ns = std::max(all.break_even_ns, each.times.break_even_ns());
    const bool more = asked.run.as == ranks_as::processes;
    const auto add = [&](std::int64_t& sum, std::int64_t bytes) {
      sum = more ? sum + bytes : std::max(sum, bytes);
    };
    add(all.memory.resident, each.memory.resident);
    add(all.memory.peak, each.memory.peak);
    add(all.memory.own, each.memory.own);
  }
  return all;
}

const char* name_of(ranks_as as) {
  return as == ranks_as::threads ? "threads" : "processes";
}

std::string text_of(const rank_outcome& outcome, std::size_t rank) {
  using loader::detail::duration_text;
  const loader::simulated_rank& times = outcome.times;
  std::string text =
      fmt::format("rank {}: utilization {:.2f} %, waits p50 {}, p99 {}, max {}, first step {}",
                  rank, 100 * times.utilisation(), duration_text(times.waits.quantile_ns(0.5)),
                  duration_text(times.waits.quantile_ns(0.99)), duration_text(times.waits.max_ns),
                  duration_text(times.first_step_ns));
  std::string causes;
  for (std::size_t i = 0; i < times.stalls.size(); ++i) {
    if (times.stalls[i].stalls == 0) continue;
    causes += fmt::format(", {} {} in {}", loader::stall_cause_names[i], times.stalls[i].stalls,
                          duration_text(times.stalls[i].waited_ns));
  }
  text += causes.empty() ? ", no stalls" : ", stalls by" + causes.substr(1);
  return text + fmt::format(", checksum {:08x}\n", times.checksum);
}

std::string as_text(const request& asked, const stored_data& data,
                    const std::vector<rank_outcome>& outcomes, std::int64_t seq_length) {
  using loader::detail::bytes_text;
  const simulated_run& run = asked.run;
  const summary all = summary_of(asked, outcomes);
  std::string text = fmt::format(
      "{} as {}, {} of {} x {} tokens, {} ms of compute each\n"
      "reader {}, {}, {} of data, {} in the page cache at the start\n",
      grouped(run.ranks, "rank"), name_of(run.as), grouped(run.steps.steps, "step"),
      run.options(0).batch_size, seq_length, asked.compute_ms, outcomes[0].reader,
      grouped(outcomes[0].slots, "slot"), bytes_text(data.bytes),
      data.resident ? fmt::format("{:.0f} %", 100 * *data.resident) : "an unknown share");
  for (std::size_t r = 0; r < outcomes.size(); ++r) text += text_of(outcomes[r], r);
  text += fmt::format("utilization {:.2f} % (lowest rank): {} MLPerf Storage's 90 %\n",
                      100 * all.utilisation,
                      all.utilisation >= loader::passing_utilisation ? "passes" : "below");
  if (run.steps.full_speed_steps > 0) {
    text += fmt::format("steps of {:.4f} ms or longer reach 90 %\n",
                        static_cast<double>(all.break_even_ns) * 1e-6);
  }
  text += fmt::format("memory: {} private, {} including file pages, {} peak\n",
                      bytes_text(all.memory.own), bytes_text(all.memory.resident),
                      bytes_text(all.memory.peak));
  for (const std::string& note : notes_of(asked, data)) text += "note: " + note + '\n';
  return text;
}

void write_json(formats::json_writer& json, const rank_outcome& outcome, std::int64_t rank) {
  const loader::simulated_rank& times = outcome.times;
  const auto ms = [](std::int64_t ns) { return static_cast<double>(ns) * 1e-6; };
  json.open('{').key("rank").value(rank).key("utilisation").value(times.utilisation());
  json.key("compute_ms").value(ms(times.compute_ns)).key("elapsed_ms").value(ms(times.elapsed_ns));
  json.key("first_step_ms").value(ms(times.first_step_ns));
  json.key("wait_p50_ms").value(ms(times.waits.quantile_ns(0.5)));
  json.key("wait_p99_ms").value(ms(times.waits.quantile_ns(0.99)));
  json.key("wait_max_ms").value(ms(times.waits.max_ns)).key("stalls").open('{');
  for (std::size_t i = 0; i < times.stalls.size(); ++i) {
    json.key(loader::stall_cause_names[i]).open('{').key("stalls").value(times.stalls[i].stalls);
    json.key("waited_ms").value(ms(times.stalls[i].waited_ns)).close('}');
  }
  json.close('}').key("major_faults").value(times.major_faults);
  json.key("full_speed_ms").value(ms(times.period_ns));
  json.key("bytes").value(times.bytes).key("checksum").value(fmt::format("{:08x}", times.checksum));
  json.close('}');
}

std::string as_json(const request& asked, const stored_data& data,
                    const std::vector<rank_outcome>& outcomes, std::int64_t seq_length) {
  const simulated_run& run = asked.run;
  const summary all = summary_of(asked, outcomes);
  formats::json_writer json;
  json.open('{').key("ranks").value(run.ranks).key("ranks_as").value(name_of(run.as));
  json.key("steps").value(run.steps.steps).key("micro_batch").value(run.options(0).batch_size);
  json.key("seq_length").value(seq_length).key("compute_ms").value(asked.compute_ms);
  json.key("reader").value(std::string(outcomes[0].reader)).key("slots").value(outcomes[0].slots);
  json.key("data_bytes").value(data.bytes).key("resident_before");
  if (data.resident) {
    json.value(*data.resident);
  } else {
    json.null();
  }
  json.key("utilisation").value(all.utilisation);
  json.key("passes").value(all.utilisation >= loader::passing_utilisation).key("break_even_ms");
  if (run.steps.full_speed_steps > 0) {
    json.value(static_cast<double>(all.break_even_ns) * 1e-6);
  } else {
    json.null();
  }
  json.key("memory").open('{').key("own_bytes").value(all.memory.own);
  json.key("resident_bytes").value(all.memory.resident);
  json.key("peak_bytes").value(all.memory.peak).close('}').key("results").open('[');
  for (std::size_t r = 0; r < outcomes.size(); ++r) {
    write_json(json, outcomes[r], static_cast<std::int64_t>(r));
  }
  json.close(']').key("notes").open('[');
  for (const std::string& note : notes_of(asked, data)) json.value(note);
  return json.close(']').close('}').text() + '\n';
}

}  // namespace

int simulate(const arguments& args) {
  po::options_description own;
  add_run_flags(own);
  auto add = own.add_options();
  for (const char* flag : {"steps", "full-speed-steps", "look-ahead", "threads", "prefetch-samples",
                           "latency-us", "jitter-us"}) {
    add(flag, po::value<std::int64_t>());
  }
  for (const char* flag : {"compute-ms", "mb-per-second"}) add(flag, po::value<double>());
  for (const char* flag : {"no-prefetch", "cold", "processes", "sync"}) {
    add(flag, po::bool_switch());
  }
  add("reader", po::value<std::string>());
  const auto line = parse_run_options(args, own, simulate_help);
  if (!line) return command::exit_done;

  std::optional<run_configuration> run = run_configuration_of(*line, simulate_help);
  const request asked = request_of(*line, *run);
  const stored_data data = data_of(*run, asked.cold);
  const auto seq_length = *line->find<std::int64_t>("seq-length");
  run.reset();  // each rank creates its own run
  const std::vector<rank_outcome> outcomes = run_ranks(asked.run);
  command::answer(line->json ? as_json(asked, data, outcomes, seq_length)
                             : as_text(asked, data, outcomes, seq_length));
  return command::exit_done;
}

}  // namespace millrace::inspect
