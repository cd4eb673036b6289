// SPDX-License-Identifier: Apache-2.0
#include "mpi/mpi_job.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/run_command.hpp>
#include <millrace/command/text.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/sha256.hpp>
#include <millrace/io/file_ops.hpp>

#include "merge/drop_duplicates.hpp"
#include "merge/token_budget.hpp"
#include "mpi/parallel_merge.hpp"
#include "mpi/part_policy.hpp"
#include "mpi/task_phase.hpp"
#include "output/committer.hpp"
#include "output/output_check.hpp"
#include "output/space_guard.hpp"
#include "run/journal.hpp"
#include "run/output_names.hpp"
#include "run/pipeline.hpp"
#include "run/run_identity.hpp"
#include "run/run_meta.hpp"

namespace millrace::preprocess {
namespace {

using clock = std::chrono::steady_clock;

bool any_is_there(const std::vector<std::filesystem::path>& files) {
  return std::ranges::any_of(files, [](const auto& path) { return io::is_there(path); });
}

sidecar_set sidecars_of(const std::filesystem::path& dataset) {
  const dataset_paths paths(dataset);
  sidecar_set found{};
  for (const sidecar which : all_sidecars) {
    found[static_cast<std::size_t>(which)] = is_file(paths.of(which));
  }
  return found;
}

/// One rank's view of the job. Checks what an earlier job left, does the tasks, merges their parts
/// and removes temporary files.
class mpi_job {
 public:
  mpi_job(rank_group& ranks, const tokenizer::tokenizer& tokenizer, const run_options& options,
          std::int64_t tasks, progress& shown, run_metrics* metrics)
      : ranks_(ranks),
        tokenizer_(tokenizer),
        options_(options),
        tasks_(tasks),
        shown_(shown),
        metrics_(metrics),
        forecast_(options.inputs, options.share().disk_bytes) {}

  run_summary finish();

 private:
  /// The state in which rank 0 found the job. Rank 0 sends it to all ranks.
  enum class start : std::uint8_t {
    afresh,   ///< start again; without --overwrite, earlier output is an error
    go_on,    ///< resume: an earlier job began or finished some tasks
    publish,  ///< everything is done except renaming
    done,     ///< everything is done
  };

  void tell_apart();
  void find_or_begin_job();
  start what_is_there();
  void open_journal();
  void expect_inputs_of(const std::vector<formats::dataset_meta>& metas,
                        const std::string& if_stopped);
  void do_all_tasks();
  void tell_what_is_kept(int status);
  run_summary do_task(std::int64_t task, task_progress& progress, const std::atomic<int>& stop);
  void watch(const progress_state& state);
  void expect_bad_records_allowed(std::int64_t met) const;
  void expect_room(const progress_state& state);
  void put_together();
  void drop_duplicates();
  void publish(const std::vector<sidecar_set>& sidecars);
  run_summary summary(double seconds);

  run_options options_of(std::int64_t task) const;
  std::vector<std::filesystem::path> prefixes_of(std::int64_t task) const;
  bool has_parts() const;

  rank_group& ranks_;
  const tokenizer::tokenizer& tokenizer_;
  const run_options& options_;
  std::int64_t tasks_;
  progress& shown_;
  run_metrics* metrics_;
  growth_forecast forecast_;
  std::vector<std::filesystem::path> prefixes_;
  encoder_options encoding_;
  run_identity identity_;
  formats::sha256::digest digest_{};  // digest of `identity_`
  start start_ = start::afresh;
  bool inputs_are_dated_ = true;    // the inputs' stamps have not changed since the job began
  std::optional<journal> journal_;  // only on rank 0
  stage_times busy_;                // only on rank 0: total of the tasks of all ranks
  double joining_seconds_ = 0;      // seconds that this rank took to merge parts
};

run_summary mpi_job::finish() {
  const auto begun = clock::now();
  ranks_.together([&] { tell_apart(); });
  auto first_digest = digest_;
  ranks_.share(first_digest);
  ranks_.together([&] {
    if (digest_ != first_digest) {
      throw config_error(
          "this rank has different flags, inputs or tokenizer files than rank 0; start all ranks "
          "with the same flags, and make sure that they see the same files");
    }
  });
  ranks_.together([&] {
    if (ranks_.is_first()) find_or_begin_job();
  });
  ranks_.share(start_);
  ranks_.share(inputs_are_dated_);
  if (start_ == start::afresh || start_ == start::go_on) {
    do_all_tasks();
    const auto parts_done = clock::now();
    put_together();
    joining_seconds_ = std::chrono::duration<double>(clock::now() - parts_done).count();
  } else {
    ranks_.together([&] {
      if (!ranks_.is_first()) return;
      if (start_ == start::publish) {
        publish(*journal_->finished());
        expect_inputs_of(read_metas(prefixes_), "the output is complete");
      }
      shown_.note_outcome("already complete: nothing was read or written");
    });
  }
  return summary(std::chrono::duration<double>(clock::now() - begun).count());
}

// Computes the identity of this job and the digest of the identity. A later job compares identities
// before it resumes this job. The ranks of one job compare digests, to check that all ranks have
// the same flags and see the same files.
void mpi_job::tell_apart() {
  prefixes_ = output_prefixes(options_);
  encoding_ = encoder_options_of(tokenizer_, options_);
  identity_ = identity_of(tokenizer_, encoding_, options_);
  identity_.emplace_back(tasks_entry, std::to_string(tasks_));
  for (const input_file& file : options_.inputs) {
    identity_.emplace_back("bytes of " + file.path.string(), std::to_string(file.size_bytes));
  }
  formats::sha256 digest;
  for (const auto& [name, value] : identity_) {
    for (const std::string& text : {name, value}) {
      const std::uint64_t size = text.size();
      digest.update(std::as_bytes(std::span(&size, 1))).update(std::as_bytes(std::span(text)));
    }
  }
  digest_ = digest.finish();
}

void mpi_job::find_or_begin_job() {
  // Call this only for its exception: throws if an input is a pipe, before any file is created.
  (void)share_of(options_.inputs, {0, tasks_}, options_.limits.largest_part_bytes());
  expect_folder(options_.output_prefix);
  refuse_inputs_among(files_of_run(options_.output_prefix, prefixes_), options_.inputs,
                      "--output-prefix");
  open_journal();
  try {
    start_ = what_is_there();
    if (start_ == start::go_on || start_ == start::publish) {
      inputs_are_dated_ =
          std::ranges::equal(journal_->stamps(), stamps_of(options_.inputs),
                             [&](const input_stamp& then, const input_stamp& now) {
                               return is_unchanged(then, now, options_.trust_inputs);
                             });
    }
    if (start_ == start::afresh) {
      refuse_datasets_of_others(options_, prefixes_);
      if (options_.overwrite) {
        // If parts of the old job were left, a later --resume would use them.
        remove_task_parts(options_.output_prefix, identity_);
        clear_abandoned(*journal_, options_.output_prefix, prefixes_);
      }
      journal_->clear();
      journal_->begin(identity_, stamps_of(options_.inputs));
    }
  } catch (...) {
    if (!journal_->identity()) journal_->discard();  // the journal served only as a lock
    throw;
  }
}

void mpi_job::open_journal() {
  try {
    journal_.emplace(options_.output_prefix, journal::start::go_on);
  } catch (const config_error&) {
    if (!options_.overwrite) throw;
    journal_.emplace(options_.output_prefix, journal::start::afresh);
  }
}

mpi_job::start mpi_job::what_is_there() {
  if (options_.overwrite) return start::afresh;
  if (journal_->identity()) {
    if (!options_.resume) {
      throw config_error(
          fmt::format("{} belongs to an unfinished run; pass --resume to continue it, or "
                      "--overwrite to start again",
                      journal_->path().string()));
    }
    expect_same_run(*journal_, identity_, options_,
                    [this](const std::string& note) { shown_.note(note); });
    if (journal_->finished()) return start::publish;
    return start::go_on;
  }
  if (!options_.resume) {
    for (const auto& prefix : prefixes_) refuse_existing(prefix);
    return start::afresh;
  }
  if (const auto metas = finished_outputs(prefixes_, tokenizer_, encoding_, options_)) {
    expect_inputs_of(*metas, "nothing was written");
    journal_->remove();
    return start::done;
  }
  for (const auto& prefix : prefixes_) refuse_existing(prefix);
  return start::afresh;
}

void mpi_job::expect_inputs_of(const std::vector<formats::dataset_meta>& metas,
                               const std::string& if_stopped) {
  run_options options = options_;
  options.trust_dates = inputs_are_dated_;
  const auto tell = [this](const std::string& what) { shown_.note(what); };
  expect_as_finished(prefixes_, metas, options, tell, if_stopped);
}

run_options mpi_job::options_of(std::int64_t task) const {
  run_options options = options_;
  const task_id id{task, tasks_};
  options.task = share_of(options_.inputs, id, options_.limits.largest_part_bytes());
  options.output_prefix = task_prefix(options_.output_prefix, id);
  options.resume = start_ == start::go_on;
  options.trust_dates = inputs_are_dated_;
  return options;
}

// Returns the prefixes of the parts that a task writes, one prefix per key.
std::vector<std::filesystem::path> mpi_job::prefixes_of(std::int64_t task) const {
  return output_prefixes(task_prefix(options_.output_prefix, {task, tasks_}), identity_);
}

bool mpi_job::has_parts() const {
  for (std::int64_t task = 0; task < tasks_; ++task) {
    if (any_is_there(files_of_task(options_, {task, tasks_}))) return true;
  }
  return false;
}

void mpi_job::do_all_tasks() {
  try {
    ranks_.together([&] {
      do_tasks(ranks_, {.tasks = tasks_,
                        .work = [this](auto task, auto& progress,
                                       const auto& stop) { return do_task(task, progress, stop); },
                        .watch = [this](const progress_state& state) { watch(state); },
                        .signal = options_.stop});
    });
  } catch (const job_ended& e) {
    shown_.close();
    if (ranks_.is_first()) tell_what_is_kept(e.status());
    throw;
  }
}

void mpi_job::tell_what_is_kept(int status) {
  if (!has_parts()) {
    journal_->discard();
  } else if (status == command::exit_failed) {
    shown_.note(
        "the finished work was kept; pass --resume to continue, or --overwrite to start again");
  }
}

run_summary mpi_job::do_task(std::int64_t task, task_progress& progress,
                             const std::atomic<int>& stop) {
  run_options options = options_of(task);
  options.stop = &stop;
  if (!options.resume) return run(tokenizer_, options, progress);
  const auto prefixes = output_prefixes(options);
  if (const auto policy = other_policy(prefixes, tokenizer_, encoding_, options)) {
    options.on_bad_record = *policy;
  }
  run_summary summary = run(tokenizer_, options, progress);
  adopt_policy(prefixes, options_.on_bad_record);
  return summary;
}

void mpi_job::watch(const progress_state& state) {
  busy_ = state.busy;
  shown_.update(state);
  if (metrics_ != nullptr) {
    metrics_->update(state);
    if (const auto note = metrics_->take_note()) shown_.note(*note);
  }
  expect_bad_records_allowed(state.bad_records);
  expect_room(state);
}

// Checks that the disk has space for the job. No task can check this, because a task is too small
// for a forecast and does not write the whole datasets.
void mpi_job::expect_room(const progress_state& state) {
  const auto growth = forecast_.next(state.read_bytes, state.input_bytes, true);
  if (!growth) return;
  for (const auto& prefix : prefixes_) {
    // If this file exists, an earlier job has reserved the space and begun to fill it.
    if (any_is_there({dataset_paths(prefix).with(".bin.partial")})) return;
  }
  expect_room_for_whole(options_.output_prefix, state.output_bytes, *growth);
}

// Checks the total number of bad records in all tasks, because each task knows only its own bad
// records.
void mpi_job::expect_bad_records_allowed(std::int64_t met) const {
  if (!options_.most_bad_records || met <= *options_.most_bad_records) return;
  throw bad_record_error(fmt::format("{} in all tasks, more than --max-bad-records {}",
                                     command::counted(met, "bad record"),
                                     *options_.most_bad_records));
}

void mpi_job::put_together() {
  if (options_.drop_duplicates) return drop_duplicates();
  std::vector<std::unique_ptr<parallel_merge>> wholes;
  for (std::size_t key = 0; key < prefixes_.size(); ++key) {
    std::vector<std::filesystem::path> parts;
    for (std::int64_t task = 0; task < tasks_; ++task) {
      parts.push_back(prefixes_of(task)[key]);
    }
    wholes.push_back(
        std::make_unique<parallel_merge>(ranks_, prefixes_[key], parts, *options_.stop));
    wholes.back()->run();
  }
  ranks_.together([&] {
    if (!ranks_.is_first()) return;
    std::vector<sidecar_set> sidecars;
    for (const auto& whole : wholes) {
      whole->keep();
      sidecars.push_back(whole->sidecars());
    }
    journal_->write_finished(sidecars);
    publish(sidecars);
  });
}

// Merges the parts on rank 0, without duplicates. If this is killed, the next job finds all parts
// and merges them again, or a journal that says that only the parts are still to be removed.
void mpi_job::drop_duplicates() {
  ranks_.together([&] {
    if (!ranks_.is_first()) return;
    std::vector<std::filesystem::path> parts;
    for (std::int64_t task = 0; task < tasks_; ++task) parts.push_back(prefixes_of(task).front());
    shown_.note("finding and dropping duplicates");
    write_without_duplicates(
        parts,
        {.input = io::parent_folder(options_.output_prefix),
         .output_prefix = prefixes_.front(),
         .overwrite = true,
         .stop = options_.stop,
         .if_stopped = "all tasks are done, but not yet merged; pass --resume to continue",
         .room_advice = "all tasks are done, but not yet merged; free disk space, then run the "
                        "command again with --resume"},
        {.by = *options_.drop_duplicates,
         .memory_bytes = options_.duplicates_bytes,
         .of_one_run = true});
    const std::vector<sidecar_set> sidecars = {sidecars_of(prefixes_.front())};
    journal_->write_finished(sidecars);
    publish(sidecars);  // all has its final name already
  });
}

// Gives the whole datasets their final names, then removes the parts, then the journal.
void mpi_job::publish(const std::vector<sidecar_set>& sidecars) {
  for (std::size_t key = 0; key < prefixes_.size(); ++key) {
    publish_dataset(dataset_paths(prefixes_[key]), sidecars.at(key));
    remove_merge_folders(prefixes_[key]);
  }
  remove_task_parts(options_.output_prefix, identity_);
  journal_->remove_finished();
}

run_summary mpi_job::summary(double seconds) {
  run_summary summary;
  measure_process(summary);
  const double cpu_seconds = ranks_.total(summary.cpu_seconds);
  const double joining_seconds = ranks_.total(joining_seconds_);
  const std::uint64_t peak_rss_bytes = ranks_.most(summary.peak_rss_bytes);
  const auto workers = static_cast<int>(ranks_.total(static_cast<double>(options_.threads())));
  ranks_.together([&] {
    if (!ranks_.is_first()) return;
    summary = summary_of(read_metas(prefixes_), options_, prefixes_);
    summary.seconds = seconds;
    summary.cpu_seconds = cpu_seconds;
    summary.peak_rss_bytes = peak_rss_bytes;
    summary.workers = workers;
    summary.processes = ranks_.size();
    summary.busy = busy_;
    summary.busy.write += joining_seconds;
    if (metrics_ != nullptr) metrics_->finish(progress_of(summary));
    shown_.close();
  });
  return summary;
}

}  // namespace

run_summary run_job(rank_group& ranks, const tokenizer::tokenizer& tokenizer,
                    const run_options& options, std::int64_t tasks, progress& shown,
                    run_metrics* metrics) {
  return mpi_job(ranks, tokenizer, options, tasks, shown, metrics).finish();
}

}  // namespace millrace::preprocess
