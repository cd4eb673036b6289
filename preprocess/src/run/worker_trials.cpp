// SPDX-License-Identifier: Apache-2.0
#include "run/worker_trials.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <limits>
#include <span>
#include <string_view>
#include <thread>

#include <fmt/format.h>

#include <millrace/command/grouped.hpp>
#include <millrace/command/text.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/json_writer.hpp>
#include <millrace/io/atomic_file.hpp>
#include <millrace/io/detail/temporary_folder.hpp>
#include <millrace/io/file_ops.hpp>

#include "output/output_check.hpp"
#include "process/stop_flag.hpp"
#include "report/progress.hpp"
#include "run/pipeline.hpp"
#include "run/usable_resources.hpp"

namespace millrace::preprocess {
namespace {

using command::grouped;

/// Takes the time of a run, and ends the run when it has made enough documents, or on a signal. A
/// thread of its own looks for the signal, since a long line or a join makes no progress.
class trial_watch final : public progress {
 public:
  trial_watch(std::int64_t documents, const std::atomic<int>* signal)
      : progress(style::silent, 1, 0),
        wanted_(documents),
        thread_([this, signal](const std::stop_token& ended) {
          while (!ended.stop_requested()) {
            if (signal != nullptr && signal->load() != 0) stop_ = signal->load();
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
          }
        }) {}

  void update(const progress_state& state) override {
    if (documents_ < wanted_) {
      documents_ = state.documents;
      seconds_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    }
    if (documents_ >= wanted_) stop_ = 1;
  }
  void note(std::string_view) override {}

  const std::atomic<int>& stop() const noexcept { return stop_; }
  std::int64_t documents() const noexcept { return documents_; }
  double seconds() const noexcept { return seconds_; }

 private:
  std::int64_t wanted_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::int64_t documents_ = 0;
  double seconds_ = 0;
  std::atomic<int> stop_ = 0;
  std::jthread thread_;
};

void expect_files(const std::vector<input_file>& inputs) {
  for (const input_file& file : inputs) {
    if (file.regular) continue;
    throw config_error(
        fmt::format("--find-optimal-num-workers reads the inputs several times, but {} can be read "
                    "only once; pass files",
                    display_path(file).string()));
  }
}

}  // namespace

double worker_trial::median() const {
  std::vector<double> rates = documents_per_second;
  std::ranges::sort(rates);
  const std::size_t middle = rates.size() / 2;
  return rates.size() % 2 == 1 ? rates[middle] : (rates[middle - 1] + rates[middle]) / 2;
}

std::vector<int> usual_workers(int cores) {
  std::vector<int> workers;
  for (int n = 1; n < cores; n *= 2) workers.push_back(n);
  workers.push_back(cores);
  return workers;
}

trial_report try_workers(const tokenizer::tokenizer& tokenizer, const run_options& run,
                         const trial_options& options,
                         const std::function<void(const std::string&)>& tell) {
  expect_files(run.inputs);
  expect_folder(run.output_prefix);
  const io::temporary_folder folder(io::parent_folder(run.output_prefix), ".millrace-trial-");
  const stop_flag stop(run.stop, "the trials were removed");
  trial_report report{.trials = {}, .least_seconds = std::numeric_limits<double>::infinity()};
  for (const int workers : options.workers) report.trials.push_back({.workers = workers});
  const std::size_t all = report.trials.size() * static_cast<std::size_t>(options.rounds);
  std::size_t done = 0;
  for (int round = 0; round < options.rounds; ++round) {
    for (worker_trial& trial : report.trials) {
      run_options one = run;
      one.workers = trial.workers;
      one.tokenizer_bytes =
          options.tokenizer_bytes.value_or(tokenizer::tokenizer::default_encoder_bytes);
      one.output_prefix = folder.path() / "trial";
      one.limits.spool_folder = folder.path();
      one.overwrite = true;
      one.resume = one.trust_inputs = false;
      one.drop_duplicates.reset();  // which comes after what is measured
      trial_watch watch(options.documents, run.stop);
      one.stop = &watch.stop();
      try {
        (void)preprocess::run(tokenizer, one, watch);
      } catch (const stopped&) {  // it has made enough documents
      }
      stop.check();
      const double rate =
          watch.seconds() > 0 ? static_cast<double>(watch.documents()) / watch.seconds() : 0;
      trial.documents_per_second.push_back(rate);
      report.documents = watch.documents();
      report.least_seconds = std::min(report.least_seconds, watch.seconds());
      tell(fmt::format("trial {} of {}: {}, {} documents/s", ++done, all,
                       grouped(trial.workers, "worker"), grouped(std::llround(rate))));
    }
    std::ranges::reverse(report.trials);
  }
  if (report.documents == 0) {
    throw config_error("--find-optimal-num-workers: the inputs have no documents to measure with");
  }
  std::ranges::stable_sort(report.trials, std::ranges::greater(), &worker_trial::median);
  return report;
}

std::string describe(const trial_report& report) {
  std::string text = "workers  documents/s\n";
  for (const worker_trial& trial : report.trials) {
    text += fmt::format("{:>7}  {:>11}\n", trial.workers, grouped(std::llround(trial.median())));
  }
  text += fmt::format("fastest: --workers {}, with the first {}\n", report.trials.front().workers,
                      grouped(report.documents, "document"));
  if (report.least_seconds < 1) {
    text +=
        "A trial took less than a second, so the order may be chance; a larger --max-documents "
        "takes longer.\n";
  }
  return text;
}

std::string to_json(const trial_report& report) {
  formats::json_writer json;
  json.open('{').key("fastest").value(report.trials.front().workers);
  json.key("documents").value(report.documents).key("trials").open('[');
  for (const worker_trial& trial : report.trials) {
    json.open('{').key("workers").value(trial.workers);
    json.key("documents_per_second").value(trial.median()).key("rounds").open('[');
    for (const double rate : trial.documents_per_second) json.value(rate);
    json.close(']').close('}');
  }
  json.close(']').close('}');
  return json.text() + "\n";
}

void write_performance(const trial_report& report, const std::filesystem::path& folder) {
  for (const worker_trial& trial : report.trials) {
    formats::json_writer json;
    json.open('{').key(std::to_string(trial.workers)).open('[');
    for (const double rate : trial.documents_per_second) json.value(rate);
    json.close(']').close('}');
    const std::string text = json.text() + "\n";
    io::atomic_file file(folder / fmt::format("{}_workers.json", trial.workers));
    file.append(std::as_bytes(std::span(text)));
    file.commit();
  }
}

}  // namespace millrace::preprocess
