// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include <fmt/format.h>

#include <millrace/command/run_command.hpp>
#include <millrace/io/file_ops.hpp>
#include <millrace/tokenizer/tokenizer_flags.hpp>

#include "input/input_plan.hpp"
#include "input/task_split.hpp"
#include "mpi/mpi_job.hpp"
#include "mpi/rank_group.hpp"
#include "process/stop_flag.hpp"
#include "report/metrics.hpp"
#include "report/progress.hpp"
#include "report/summary.hpp"
#include "run/conversation_setup.hpp"
#include "run/options.hpp"
#include "run/output_names.hpp"
#include "run/run_options.hpp"
#include "run/usable_resources.hpp"

namespace {

namespace command = millrace::command;
namespace preprocess = millrace::preprocess;

constexpr const char* program_name = "preprocess_data_mpi";
constexpr auto which = preprocess::program::together;

// Parses the flags, which are the same on all ranks. Rank 0 prints help or version if requested.
bool take_flags(int argc, char** argv, bool first, preprocess::program_flags& line) {
  try {
    line = preprocess::parse_command_line(argc, argv, which);
  } catch (const command::usage_error& e) {
    throw command::usage_error(fmt::format("{} ({}; try --help)", e.what(), usage_of(which)));
  }
  if (!line.help && !line.version) return true;
  if (first && line.help) command::answer(preprocess::help_text(which, line.help_group));
  if (first && line.version) command::print_version(program_name, preprocess::optional_parts());
  return false;
}

int preprocess_data_mpi(preprocess::rank_group& ranks, int argc, char** argv) {
  preprocess::program_flags line;
  bool to_run = false;
  ranks.together([&] { to_run = take_flags(argc, argv, ranks.is_first(), line); });
  if (!to_run) return command::exit_done;

  const auto neighbors = ranks.count_neighbors();
  std::unique_ptr<const millrace::tokenizer::tokenizer> tokenizer;
  ranks.together([&] {
    tokenizer = millrace::tokenizer::open_tokenizer(line.tokenizer);
    preprocess::expect_eod(*tokenizer, line);
    line.run.inputs = preprocess::plan_inputs(
        line.inputs, {.expect_input = preprocess::refusal_of_outputs(line.run),
                      .most_window_bytes = line.zstd_window_bytes.value_or(
                          preprocess::default_zstd_window_bytes(neighbors.on_machine)),
                      .columns = preprocess::columns_of(line),
                      .tell = [&](const std::string& note) {
                        if (ranks.is_first()) command::tell("note: " + note + "\n");
                      }});
    preprocess::take_test_hooks(line.run);
    if (line.conversations) {
      line.run.conversations =
          preprocess::open_conversations(*line.conversations, line.tokenizer, line.run, false);
    }
  });
  if (!line.workers_told) {
    line.run.workers = std::max(1, line.run.workers / neighbors.on_same_cores);
  }
  line.run.limits.spool_folder = millrace::io::parent_folder(line.run.output_prefix);
  line.run.stop = &preprocess::catch_stop_signals();
  auto tasks = static_cast<std::int64_t>(preprocess::test_number(
      "MILLRACE_TEST_TASKS", static_cast<std::size_t>(preprocess::task_count(line.run.inputs))));
  // A single task would drop duplicates itself, and the merge expects parts with all documents.
  if (line.run.drop_duplicates) tasks = std::max<std::int64_t>(tasks, 2);

  const std::uint64_t total_bytes = line.run.share().disk_bytes;
  using style = preprocess::progress::style;
  preprocess::progress progress(
      ranks.is_first() ? preprocess::progress::style_of_stderr() : style::silent, line.log_interval,
      total_bytes);
  std::optional<preprocess::run_metrics> metrics;
  ranks.together([&] {
    if (!ranks.is_first()) return;
    if (const auto note = preprocess::note_on_unused(line)) progress.note(*note);
    for (const std::string& note : tokenizer->notes()) progress.note("note: " + note);
    if (!line.metrics) return;
    preprocess::expect_metrics_file(*line.metrics, line.run, tasks);
    metrics.emplace(*line.metrics, line.metrics_as, total_bytes);
  });
  preprocess::run_summary summary = preprocess::run_job(ranks, *tokenizer, line.run, tasks,
                                                        progress, metrics ? &*metrics : nullptr);
  ranks.together([&] {
    if (!ranks.is_first()) return;
    if (metrics) {
      if (const auto note = metrics->take_note()) progress.note(*note);
    }
    summary.tokenizer = preprocess::choice_of(line.tokenizer);
    command::tell(preprocess::describe(summary));
    if (line.json) command::answer(preprocess::to_json(summary));
  });
  return command::exit_done;
}

// If a rank throws any exception except `job_ended`, aborts the whole job. Otherwise the other
// ranks would wait forever for this rank in their next collective step.
int run(preprocess::rank_group& ranks, int argc, char** argv) {
  try {
    return preprocess_data_mpi(ranks, argc, argv);
  } catch (const preprocess::job_ended& e) {
    return e.status();
  } catch (const std::exception& e) {
    command::tell(
        fmt::format("{}: rank {}: {}\n", program_name, ranks.rank(), command::one_line(e.what())));
    ranks.abort(command::exit_failed);
  }
}

}  // namespace

int main(int argc, char** argv) {
  return command::run_command(program_name, usage_of(which), argc, argv, [&] {
    preprocess::rank_group ranks(program_name, &argc, &argv);
    return run(ranks, argc, argv);
  });
}
