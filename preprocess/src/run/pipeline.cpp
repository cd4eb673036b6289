// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline.hpp"

#include <algorithm>
#include <chrono>
#include <optional>

#include <fmt/format.h>

#include <millrace/command/text.hpp>
#include <millrace/io/file_ops.hpp>

#include "output/committer.hpp"
#include "output/output_check.hpp"
#include "output/partition_files.hpp"
#include "output/space_guard.hpp"
#include "run/abandoned_run.hpp"
#include "run/checkpointer.hpp"
#include "run/journal.hpp"
#include "run/output_names.hpp"
#include "run/run_identity.hpp"
#include "run/run_meta.hpp"
#include "run/stages.hpp"

namespace millrace::preprocess {
namespace {

using clock = std::chrono::steady_clock;

// Where that cannot be found out, it may have.
bool may_have_output(const std::filesystem::path& prefix) {
  const dataset_paths paths(prefix);
  try {
    return io::is_there(paths.bin) || io::is_there(paths.idx);
  } catch (const io_error&) {
    return true;
  }
}

// The files of a dataset, by name.
std::vector<std::string> files_there(const std::filesystem::path& prefix) {
  const dataset_paths paths(prefix);
  std::vector<std::string> files = {paths.bin.string(), paths.idx.string()};
  for (const sidecar which : all_sidecars) {
    const auto path = paths.of(which);
    if (io::is_there(path)) files.push_back(path.string());
  }
  return files;
}

/// One run, from the look at what earlier ones left to the last rename.
class run_in_progress {
 public:
  run_in_progress(const tokenizer::tokenizer& tokenizer, const run_options& options,
                  progress& progress, run_metrics* metrics)
      : tokenizer_(tokenizer),
        options_(options),
        progress_(progress),
        metrics_(metrics),
        prefixes_(output_prefixes(options)),
        encoding_(encoder_options_of(tokenizer, options)),
        identity_(identity_of(tokenizer, encoding_, options)) {
    expect_folder(options.output_prefix);
    refuse_inputs_among(files_of_run(options.output_prefix, prefixes_,
                                     static_cast<std::size_t>(options.partitions)),
                        options.inputs, "--output-prefix");
  }

  run_summary finish() {
    const auto start = clock::now();
    journal journal(options_.output_prefix,
                    options_.overwrite ? journal::start::afresh : journal::start::go_on);
    kept_ = journal.identity().has_value();
    run_summary summary;
    try {
      const auto done = earlier_outputs(journal);
      summary = done ? *done : write(journal);
      if (done) tell_done(summary);
    } catch (...) {
      if (!kept_) journal.discard();  // it was only made to have the lock
      throw;
    }
    for (output_summary& output : summary.outputs) output.files = files_there(output.prefix);
    progress_.close();
    summary.seconds = std::chrono::duration<double>(clock::now() - start).count();
    measure_process(summary);
    return summary;
  }

 private:
  std::optional<run_summary> earlier_outputs(journal& journal);
  progress_state state_of(const run_state& state, std::uint64_t read_bytes,
                          std::int64_t blocks_in_flight) const;
  void tell(const progress_state& state);
  run_summary write(journal& journal);
  void expect_bad_records_allowed(std::int64_t met) const;
  void expect_good_records(committer& committer, journal& journal);
  void tell_done(const run_summary& summary);
  void read_all(committer& committer, journal& journal, checkpointer& checkpoints,
                const read_range& range);
  void give_up(committer& committer, journal& journal, checkpointer& checkpoints);
  void join_partitions(committer& committer, journal& journal, checkpointer& checkpoints);
  void complete(committer& committer, journal& journal, checkpointer& checkpoints);
  std::vector<std::string> names_of_inputs(const run_state& state) const;
  std::vector<sidecar_set> finish_files(committer& committer) const;
  void publish(journal& journal, const std::vector<sidecar_set>& sidecars) const;
  bool goes_on(const journal& journal) const {
    return options_.resume && !options_.overwrite && journal.state().has_value();
  }

  const tokenizer::tokenizer& tokenizer_;
  const run_options& options_;
  progress& progress_;
  run_metrics* metrics_;  // null if nobody wants them
  stage_clock clock_;
  std::vector<std::filesystem::path> prefixes_;
  encoder_options encoding_;
  run_identity identity_;
  bool kept_ = false;  // there is an unfinished run, this one or another
};

progress_state run_in_progress::state_of(const run_state& state, std::uint64_t read_bytes,
                                         std::int64_t blocks_in_flight) const {
  progress_state now{.documents = state.counts.documents,
                     .read_bytes = read_bytes,
                     .bad_records = state.counts.bad_record_total(),
                     .blocks_in_flight = blocks_in_flight,
                     .busy = clock_.busy()};
  for (const input_total& total : state.inputs) now.input_bytes += total.text_bytes;
  const auto& [wholes, parts] = state.outputs;
  for (const dataset_state& output : parts.empty() ? wholes : parts) {
    now.tokens +=
        static_cast<std::int64_t>(output.bin_bytes / formats::size_bytes(encoding_.dtype));
    now.output_bytes += output.output_bytes();
  }
  return now;
}

void run_in_progress::tell(const progress_state& state) {
  progress_.update(state);
  if (metrics_ == nullptr) return;
  metrics_->update(state);
  if (const auto note = metrics_->take_note()) progress_.note(*note);
}

// For who looks at the rates, or at the metrics, of a run that had nothing to do.
void run_in_progress::tell_done(const run_summary& summary) {
  const bool blind = std::ranges::any_of(options_.inputs, [](const input_file& file) {
    return !file.regular;  // a pipe, which is not drained to find out
  });
  progress_.note_outcome(std::string("already complete: nothing was written") +
                         (blind ? "; input from a pipe was not compared" : ""));
  if (metrics_ == nullptr) return;
  metrics_->finish(progress_of(summary));
}

// What an earlier run left: its result, if it is the one wanted here; or nothing in the way.
std::optional<run_summary> run_in_progress::earlier_outputs(journal& journal) {
  if (options_.overwrite) return std::nullopt;
  if (journal.identity()) {
    if (!options_.resume) {
      throw config_error(
          fmt::format("{} belongs to an unfinished run; pass --resume to continue it, or "
                      "--overwrite to start again",
                      journal.path().string()));
    }
    const resumed_inputs inputs = expect_same_run(
        journal, identity_, options_, [&](const std::string& note) { progress_.note(note); });
    if (inputs.restart) {
      progress_.note(
          fmt::format("--resume: {} was damaged; reading it again from the start",
                      display_path(options_.inputs[journal.state()->next.input]).string()));
      journal.go_back(options_.share().begin.input);
    }
    // The next run then need not compare these inputs again. The journal must not get the stamp of
    // a mended file while it still holds the state of the damaged one: a run that resumed after a
    // kill would take that state for one of the mended file. So this comes after go_back(); and
    // where that left no state, write() clears the journal and begins it with new stamps.
    if (journal.state() && !journal.finished() && inputs.stamps != journal.stamps()) {
      journal.renew_stamps(inputs.stamps);
    }
    if (!journal.finished()) return std::nullopt;
    publish(journal, *journal.finished());
    return summary_of(read_metas(prefixes_), options_, prefixes_);
  }
  if (options_.resume) {
    const auto metas = finished_outputs(prefixes_, tokenizer_, encoding_, options_);
    if (metas) {
      expect_as_finished(prefixes_, *metas, options_,
                         [&](const std::string& note) { progress_.note(note); });
      journal.remove();
      return summary_of(*metas, options_, prefixes_);
    }
  }
  for (const auto& prefix : prefixes_) refuse_existing(prefix);
  return std::nullopt;
}

// A run that goes on may have been told less of bad records than it has met by now.
void run_in_progress::expect_bad_records_allowed(std::int64_t met) const {
  const bool fails = options_.on_bad_record == bad_record_policy::fail;
  const std::int64_t most = fails ? 0 : options_.most_bad_records.value_or(met);
  if (met <= most) return;
  throw config_error(fmt::format(
      "--resume: the interrupted run skipped {}; pass {}", command::counted(met, "bad record"),
      fails ? "the same --on-bad-record" : "a --max-bad-records that allows them"));
}

// A run that drops all of its records was given the wrong flags or files. It leaves nothing, and an
// old output as it is. A task may have had the bad records of the run: what all tasks together have
// is for the merge to judge.
void run_in_progress::expect_good_records(committer& committer, journal& journal) {
  const record_counts& counts = committer.state().counts;
  const std::int64_t bad = counts.bad_record_total();
  if (counts.documents != 0 || bad == 0) return;
  const std::string& first = committer.first_fault();
  if (options_.task && options_.task->id.of > 1) {
    progress_.note("every record of this task is bad; its part has no documents");
    return;
  }
  committer.forget();
  journal.clear();  // first: a state must not outlive its files
  for (const auto& prefix : prefixes_) remove_part_files(prefix);
  journal.remove();
  throw error(fmt::format("every record is bad, so nothing was written: {}{}{}",
                          command::counted(bad, "record"), first.empty() ? "" : "; the first is ",
                          first));
}

run_summary run_in_progress::write(journal& journal) {
  const run_state* from = goes_on(journal) ? &*journal.state() : nullptr;
  const task_share share = options_.share();
  read_range range{.begin = share.begin,
                   .count_from = share.begin,
                   .end = share.end,
                   .at_line = share.at_line()};
  if (from != nullptr) {
    range.begin = from->next;
    range.at_line = true;
    range.crc32c = from->inputs.back().crc32c;
    expect_bad_records_allowed(from->counts.bad_record_total());
  }
  const commit_options commit{
      .prefixes = prefixes_,
      .dataset = {.type = encoding_.dtype,
                  .checksums = options_.checksums,
                  .provenance = options_.provenance,
                  .quarantine = options_.on_bad_record == bad_record_policy::quarantine},
      .partitions = static_cast<std::size_t>(options_.partitions),
      .on_bad_record = options_.on_bad_record,
      .most_bad_records = options_.most_bad_records,
      .most_raw_bytes = options_.limits.giant_bytes,
      .begin = share.begin};
  if (options_.partitions > 1) expect_room_for_partitions(prefixes_.size(), commit.partitions);
  if (from == nullptr) refuse_datasets_of_others(options_, prefixes_);
  // First: else a kill could leave a state in it, and not the files that it is the state of.
  // Whoever wants to overwrite has said so for those who go on with this run, too.
  if (from == nullptr && !options_.overwrite) journal.clear();
  if (from == nullptr && options_.overwrite) {
    clear_abandoned(journal, options_.output_prefix, prefixes_);
    journal.begin(identity_, stamps_of(options_.inputs));
  }
  committer committer(options_.inputs, range, commit, from);
  if (from == nullptr && !journal.identity()) {
    journal.begin(identity_, stamps_of(options_.inputs));
  } else if (from == nullptr) {
    journal.sync_names();
  }
  committer.keep();
  kept_ = true;
  checkpointer checkpoints(committer, journal, options_.checkpoint_period);
  read_all(committer, journal, checkpoints, range);
  expect_good_records(committer, journal);
  if (options_.partitions > 1) join_partitions(committer, journal, checkpoints);
  {
    const auto timed = clock_.time(stage_clock::stage::sync);
    complete(committer, journal, checkpoints);
  }
  run_summary summary = summary_of(committer.state(), options_, encoding_, prefixes_);
  summary.busy = clock_.busy();
  if (metrics_ != nullptr) metrics_->finish(state_of(committer.state(), summary.read_bytes, 0));
  return summary;
}

void run_in_progress::read_all(committer& committer, journal& journal, checkpointer& checkpoints,
                               const read_range& range) {
  space_guard space(options_.inputs, options_.share().disk_bytes);
  const auto after_commit = [&](const stage_report& report) {
    for (const std::string& note : report.notes) progress_.note(note);
    tell(state_of(committer.state(), report.read_bytes, report.blocks_in_flight));
    // A task that has met no line yet does not know where it begins.
    if (!committer.is_untouched()) checkpoints.update();
    space.update(committer, report.read_bytes, report.giant);
  };
  bool ended = false;
  try {
    ended = run_stages(tokenizer_, encoding_, options_, range, committer, clock_, after_commit);
    checkpoints.collect();
  } catch (const format_error& fault) {
    committer.note_damage(fault);
    give_up(committer, journal, checkpoints);
    throw;
  } catch (...) {
    give_up(committer, journal, checkpoints);
    throw;
  }
  if (ended) {
    committer.note_all_read();
    return;
  }
  if (committer.is_untouched()) {
    give_up(committer, journal, checkpoints);
    throw stopped("stopped before there was anything to save");
  }
  checkpoints.make_safe();
  throw stopped(fmt::format("stopped, with {} safe; pass --resume to continue",
                            command::counted(committer.state().counts.documents, "document")));
}

// Keeps what was done, or leaves no trace if that was nothing; but where it was to replace
// something, the journal still says so.
void run_in_progress::give_up(committer& committer, journal& journal, checkpointer& checkpoints) {
  if (committer.is_untouched()) {
    committer.forget();
    if (std::ranges::none_of(prefixes_, may_have_output)) journal.discard();
    return;
  }
  try {
    checkpoints.make_safe();
  } catch (const error&) {
    progress_.note_outcome(
        "the finished work up to the last checkpoint was kept; pass --resume to continue, or "
        "--overwrite to "
        "start again");
    return;
  }
  progress_.note_outcome(fmt::format(
      "the finished work was kept: {}; pass --resume to continue, or --overwrite to start again",
      command::counted(committer.state().counts.documents, "document")));
}

// As reading does, it may be stopped and gone on with.
void run_in_progress::join_partitions(committer& committer, journal& journal,
                                      checkpointer& checkpoints) {
  progress_.note(fmt::format("joining {} partitions", options_.partitions));
  run_state state = committer.state();
  state.inputs.resize(options_.inputs.size());
  const std::vector<std::string> names = names_of_inputs(state);
  std::uint64_t metas = 0;
  for (std::size_t key = 0; key < prefixes_.size(); ++key) {
    metas += formats::meta_bytes(meta_of(tokenizer_, encoding_, options_, state, key, {}));
  }
  bool joined = false;
  try {
    reserve_for_joining(committer.outputs(), names, metas);
    const auto timed = clock_.time(stage_clock::stage::write);
    joined = committer.join_partitions(names, options_.limits.block_bytes, [&] {
      checkpoints.update();
      return options_.stop == nullptr || options_.stop->load() == 0;
    });
    checkpoints.collect();
  } catch (...) {
    give_up(committer, journal, checkpoints);
    throw;
  }
  if (joined) return;
  checkpoints.make_safe();
  throw stopped(stop_message(options_.stop->load(),
                             "the partitions are not joined yet; pass --resume to join the rest"));
}

void run_in_progress::complete(committer& committer, journal& journal, checkpointer& checkpoints) {
  std::vector<sidecar_set> sidecars;
  try {
    sidecars = finish_files(committer);
    journal.write_finished(sidecars);
  } catch (...) {
    // What finish_files() adds goes behind the state, or to places that it writes again.
    give_up(committer, journal, checkpoints);
    throw;
  }
  publish(journal, sidecars);
}

// For P.src.
std::vector<std::string> run_in_progress::names_of_inputs(const run_state& state) const {
  std::vector<std::string> names;
  for (const std::size_t input : listed_inputs(options_, state)) {
    names.push_back(display_path(options_.inputs[input]).string());
  }
  return names;
}

std::vector<sidecar_set> run_in_progress::finish_files(committer& committer) const {
  run_state state = committer.state();
  state.inputs.resize(options_.inputs.size());  // totals of those without a line as well
  const std::vector<std::string> names = names_of_inputs(state);
  std::vector<sidecar_set> sidecars;
  std::size_t key = 0;
  for (dataset_writer& writer : committer.writers()) {
    const std::string root = writer.finish(names);
    const auto meta = meta_of(tokenizer_, encoding_, options_, state, key++, root);
    writer.finish_meta(to_json(meta));
    sidecars.push_back(writer.sidecars());
  }
  return sidecars;
}

void run_in_progress::publish(journal& journal, const std::vector<sidecar_set>& sidecars) const {
  for (std::size_t key = 0; key < prefixes_.size(); ++key) {
    publish_dataset(dataset_paths(prefixes_[key]), sidecars.at(key));
    remove_part_files(prefixes_[key]);
  }
  journal.remove_finished();
}

}  // namespace

encoder_options encoder_options_of(const tokenizer::tokenizer& tokenizer,
                                   const run_options& options) {
  encoder_options out{.keys = options.keys,
                      .append_eod = std::nullopt,
                      .dtype = formats::dtype_for_vocabulary(tokenizer.vocab_size()),
                      .on_bad_record = options.on_bad_record,
                      .sentences = options.sentences,
                      .tokenizer_bytes = options.tokenizer_bytes};
  if (options.append_eod) {
    out.append_eod = tokenizer.eod();
    if (!out.append_eod) {
      throw config_error(
          "--append-eod: the tokenizer's files define no end-of-document token; pass --eod-token");
    }
  }
  return out;
}

run_summary run(const tokenizer::tokenizer& tokenizer, const run_options& options,
                progress& progress, run_metrics* metrics) {
  return run_in_progress(tokenizer, options, progress, metrics).finish();
}

}  // namespace millrace::preprocess
