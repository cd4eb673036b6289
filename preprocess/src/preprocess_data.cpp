// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>

#include <millrace/command/run_command.hpp>
#include <millrace/command/terminal.hpp>
#include <millrace/io/file_ops.hpp>
#include <millrace/tokenizer/tokenizer_flags.hpp>

#include "input/input_plan.hpp"
#include "output/committer.hpp"
#include "process/stop_flag.hpp"
#include "report/dry_run.hpp"
#include "report/metrics.hpp"
#include "report/preview.hpp"
#include "report/progress.hpp"
#include "report/summary.hpp"
#include "run/conversation_setup.hpp"
#include "run/options.hpp"
#include "run/output_names.hpp"
#include "run/pipeline.hpp"
#include "run/run_options.hpp"
#include "run/usable_resources.hpp"
#include "run/worker_trials.hpp"

namespace {

namespace command = millrace::command;
namespace preprocess = millrace::preprocess;

constexpr double usual_source_bytes = 3;  // estimated bytes per document in `P.src`
constexpr double mask_bytes = 1.0 / 8;    // bytes per token in `P.mask`

int foretell(const millrace::tokenizer::tokenizer& tokenizer,
             const preprocess::program_flags& line) {
  const auto encoding = preprocess::encoder_options_of(tokenizer, line.run);
  auto report = preprocess::dry_run(
      {.inputs = line.run.inputs,
       .keys = line.run.keys.size(),
       .token_bytes = millrace::formats::size_bytes(encoding.dtype),
       .workers = line.run.threads(),
       .block_bytes = line.run.limits.block_bytes,
       .blocks_in_flight = line.run.most_blocks(),
       .sidecar_bytes_per_document = line.run.provenance ? usual_source_bytes : 0,
       .sidecar_bytes_per_token = encoding.conversations ? mask_bytes : 0,
       .most_tokens = line.run.most_tokens,
       .permutes = line.run.fim.has_value(),
       .record_rate = line.run.sample ? line.run.sample->rate : 1},
      preprocess::make_sample_encoder(tokenizer, encoding));
  report.tokenizer = preprocess::choice_of(line.tokenizer);
  if (line.run.partitions > 1) {
    report.notes.emplace_back(
        "With --partitions, the run needs twice this disk space until it ends.");
  }
  if (line.run.drop_duplicates) {
    report.notes.emplace_back(
        "With --drop-duplicates, the run needs twice this disk space until it ends. The estimate "
        "counts all documents: how many repeat an earlier one is not known.");
  }
  command::answer(line.json ? preprocess::to_json(report) : preprocess::describe(report));
  return command::exit_done;
}

int show(const millrace::tokenizer::tokenizer& tokenizer, const preprocess::program_flags& line) {
  const auto marks = command::stdout_has_colors() ? preprocess::preview_marks::colors
                                                  : preprocess::preview_marks::brackets;
  command::answer(preprocess::preview(tokenizer,
                                      preprocess::encoder_options_of(tokenizer, line.run),
                                      line.run.inputs, line.run.limits, *line.preview, marks));
  return command::exit_done;
}

int find_workers(const millrace::tokenizer::tokenizer& tokenizer,
                 const preprocess::program_flags& line) {
  if (line.performance_in) {  // first, because the trials take long
    std::error_code problem;
    std::filesystem::create_directories(*line.performance_in, problem);
    if (problem) throw millrace::io_error(*line.performance_in, "mkdir", problem.value());
  }
  preprocess::trial_report report;
  try {
    report = preprocess::try_workers(tokenizer, line.run, *line.trials,
                                     [](const std::string& note) { command::tell(note + "\n"); });
  } catch (const preprocess::stopped& e) {
    command::tell(std::string("preprocess_data: ") + e.what() + "\n");
    return preprocess::exit_stopped;
  }
  if (line.performance_in) preprocess::write_performance(report, *line.performance_in);
  command::answer(line.json ? preprocess::to_json(report) : preprocess::describe(report));
  return command::exit_done;
}

int preprocess_data(int argc, const char* const* argv) {
  preprocess::program_flags line = preprocess::parse_command_line(argc, argv);
  if (line.help) {
    command::answer(preprocess::help_text(preprocess::program::alone, line.help_group));
    return command::exit_done;
  }
  if (line.version) {
    command::print_version("preprocess_data", preprocess::optional_parts());
    return command::exit_done;
  }
  const auto tokenizer = millrace::tokenizer::open_tokenizer(line.tokenizer);
  preprocess::expect_eod(*tokenizer, line);
  line.run.inputs = preprocess::plan_inputs(
      line.inputs,
      {.expect_input = preprocess::refusal_of_outputs(line.run),
       .most_window_bytes =
           line.zstd_window_bytes.value_or(preprocess::default_zstd_window_bytes()),
       .columns = preprocess::columns_of(line),
       .tell = [](const std::string& note) { command::tell("note: " + note + "\n"); }});
  preprocess::take_test_hooks(line.run);
  if (line.conversations) {
    line.run.conversations =
        preprocess::open_conversations(*line.conversations, line.tokenizer, line.run, true);
  }
  if (const auto note = preprocess::note_on_unused(line)) command::tell(*note + "\n");
  if (line.preview) return show(*tokenizer, line);
  if (line.trials) {
    line.run.stop = &preprocess::catch_stop_signals();
    return find_workers(*tokenizer, line);
  }
  if (line.task) {
    line.run.task =
        preprocess::share_of(line.run.inputs, *line.task, line.run.limits.largest_part_bytes());
  }
  const std::uint64_t total_bytes = line.run.share().disk_bytes;

  preprocess::progress progress(preprocess::progress::style_of_stderr(), line.log_interval,
                                total_bytes);
  for (const std::string& note : tokenizer->notes()) progress.note("note: " + note);
  if (line.dry_run) return foretell(*tokenizer, line);
  std::optional<preprocess::run_metrics> metrics;
  if (line.metrics) {
    preprocess::expect_metrics_file(*line.metrics, line.run);
    metrics.emplace(*line.metrics, line.metrics_as, total_bytes);
  }
  line.run.limits.spool_folder = millrace::io::parent_folder(line.run.output_prefix);
  line.run.stop = &preprocess::catch_stop_signals();
  preprocess::run_summary summary;
  try {
    summary = preprocess::run(*tokenizer, line.run, progress, metrics ? &*metrics : nullptr);
  } catch (const preprocess::stopped& e) {
    progress.close();
    command::tell(std::string("preprocess_data: ") + e.what() + "\n");
    return preprocess::exit_stopped;
  } catch (const preprocess::bad_record_error& e) {
    if (line.run.on_bad_record != preprocess::bad_record_policy::fail || e.has_advice()) throw;
    throw millrace::error(
        std::string(e.what()) +
        "; --on-bad-record skip drops such records, and quarantine also saves them "
        "in a .bad file");
  }
  if (metrics) {
    // If run() failed to write a metrics sample, tell the user why.
    if (const auto note = metrics->take_note()) progress.note(*note);
  }
  summary.tokenizer = preprocess::choice_of(line.tokenizer);
  command::tell(preprocess::describe(summary));
  if (line.json) command::answer(preprocess::to_json(summary));
  return command::exit_done;
}

}  // namespace

int main(int argc, char** argv) {
  return command::run_command("preprocess_data", preprocess::usage_of(preprocess::program::alone),
                              argc, argv, [&] { return preprocess_data(argc, argv); });
}
