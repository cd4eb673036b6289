// SPDX-License-Identifier: Apache-2.0
#include "run/pipeline.hpp"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/text.hpp>
#include <millrace/io/file_ops.hpp>

#include "merge/drop_duplicates.hpp"
#include "output/output_check.hpp"
#include "output/part_joiner.hpp"
#include "process/fault_point.hpp"
#include "record/fim_encoder.hpp"
#include "run/journal.hpp"
#include "run/open_run.hpp"
#include "run/output_names.hpp"
#include "run/run_identity.hpp"
#include "run/run_meta.hpp"

namespace millrace::preprocess {
namespace {

// Returns the names of the files that a finished dataset has.
std::vector<std::string> files_there(const std::filesystem::path& prefix) {
  const dataset_paths paths(prefix);
  std::vector<std::string> files = {paths.bin.string(), paths.idx.string()};
  for (const sidecar which : all_sidecars) {
    const auto path = paths.of(which);
    if (io::is_there(path)) files.push_back(path.string());
  }
  return files;
}

/// Does one run: checks what earlier runs left, writes the outputs and gives them their final
/// names.
class run_in_progress {
 public:
  explicit run_in_progress(run_context& run)
      : run_(run),
        journal_(run.options.output_prefix,
                 run.options.overwrite ? journal::start::afresh : journal::start::go_on),
        kept_(journal_.identity().has_value()) {}

  run_summary finish() {
    run_summary summary;
    try {
      const auto done = earlier_outputs();
      summary = done ? *done : write();
      if (done) tell_done(summary);
    } catch (...) {
      if (!kept_) journal_.discard();  // the journal served only as a lock
      throw;
    }
    for (output_summary& output : summary.outputs) output.files = files_there(output.prefix);
    run_.progress.close();
    summary.seconds = std::chrono::duration<double>(clock::now() - start_).count();
    measure_process(summary);
    return summary;
  }

 private:
  using clock = std::chrono::steady_clock;

  std::optional<run_summary> earlier_outputs();
  run_summary write();
  void expect_folder_of_all() const;
  void expect_bad_records_allowed(std::int64_t met) const;
  void tell_done(const run_summary& summary);
  void publish(const std::vector<sidecar_set>& sidecars);
  void drop_duplicates();
  bool resumes() const {
    return run_.options.resume && !run_.options.overwrite && journal_.state().has_value();
  }

  run_context& run_;
  clock::time_point start_ = clock::now();
  journal journal_;
  bool kept_;  // keep the journal: it describes an unfinished run
};

// Reports, on the progress display and in the metrics, that the run had nothing to do.
void run_in_progress::tell_done(const run_summary& summary) {
  const bool blind = std::ranges::any_of(run_.options.inputs, [](const input_file& file) {
    return !file.regular;  // a pipe cannot be compared without reading all of it
  });
  run_.progress.note_outcome(std::string("already complete: nothing was written") +
                             (blind ? "; input from a pipe was not compared" : ""));
  if (run_.metrics == nullptr) return;
  run_.metrics->finish(progress_of(summary));
}

// Returns the result of an earlier run if this run would write the same outputs. Otherwise returns
// nothing. Throws if an earlier output prevents this run.
std::optional<run_summary> run_in_progress::earlier_outputs() {
  if (run_.options.overwrite) return std::nullopt;
  if (journal_.identity()) {
    if (!run_.options.resume) {
      throw config_error(
          fmt::format("{} belongs to an unfinished run; pass --resume to continue it, or "
                      "--overwrite to start again",
                      journal_.path().string()));
    }
    const resumed_inputs inputs =
        expect_same_run(journal_, run_.identity, run_.options,
                        [&](const std::string& note) { run_.progress.note(note); });
    if (inputs.restart) {
      run_.progress.note(
          fmt::format("--resume: {} was damaged; reading it again from the start",
                      display_path(run_.options.inputs[journal_.state()->next.input]).string()));
      journal_.go_back(run_.options.share().begin.input);
    }
    // Renew the stamps, so that the next run need not compare these inputs again. Do this only
    // after go_back(): the journal must not get the stamp of a repaired file while it still has the
    // state of the damaged file. After a kill, a resumed run would apply that state to the repaired
    // file. If go_back() left no state, write() clears the journal and begins it with new stamps.
    if (journal_.state() && !journal_.finished() && inputs.stamps != journal_.stamps()) {
      journal_.renew_stamps(inputs.stamps);
    }
    expect_folder_of_all();
    if (!journal_.finished()) return std::nullopt;
    publish(*journal_.finished());
    return summary_of(read_metas(run_.prefixes), run_.options, run_.prefixes);
  }
  if (run_.options.resume) {
    const auto metas = finished_outputs(run_.prefixes, run_.tokenizer, run_.encoding, run_.options);
    if (metas) {
      expect_as_finished(run_.prefixes, *metas, run_.options,
                         [&](const std::string& note) { run_.progress.note(note); });
      journal_.remove();
      remove_folder_of_all(run_.options.output_prefix);
      return summary_of(*metas, run_.options, run_.prefixes);
    }
  }
  for (const auto& prefix : run_.prefixes) refuse_existing(prefix);
  return std::nullopt;
}

// Throws if somebody removed the folder of the documents that the journal describes.
void run_in_progress::expect_folder_of_all() const {
  if (!run_.options.drops_duplicates_itself()) return;
  if (!journal_.state() && !journal_.finished()) return;
  const auto folder = io::parent_folder(run_.written.front());
  if (io::is_folder(folder)) return;
  throw config_error(fmt::format(
      "--resume: there is no folder {}, which had all documents of this run; pass --overwrite to "
      "start again",
      folder.string()));
}

// Throws if a resumed run allows fewer bad records than the interrupted run has already met.
void run_in_progress::expect_bad_records_allowed(std::int64_t met) const {
  const bool fails = run_.options.on_bad_record == bad_record_policy::fail;
  const std::int64_t most = fails ? 0 : run_.options.most_bad_records.value_or(met);
  if (met <= most) return;
  throw config_error(fmt::format(
      "--resume: the interrupted run skipped {}; pass {}", command::counted(met, "bad record"),
      fails ? "the same --on-bad-record" : "a --max-bad-records that allows them"));
}

run_summary run_in_progress::write() {
  const run_progress* from = resumes() ? &*journal_.state() : nullptr;
  const task_share share = run_.options.share();
  read_range range{
      .begin = share.begin, .count_from = share.begin, .end = share.end, .at_line = share.at_line};
  if (from != nullptr) {
    range.begin = from->next;
    range.at_line = true;
    range.crc32c = from->inputs.back().crc32c;
    expect_bad_records_allowed(from->counts.bad_record_total());
  }
  if (run_.options.partitions > 1) {
    expect_room_for_partitions(run_.prefixes.size(),
                               static_cast<std::size_t>(run_.options.partitions));
  }
  if (from == nullptr) refuse_datasets_of_others(run_.options, run_.prefixes);
  // For a new run, clear the journal before the files are opened. Otherwise, a kill could leave a
  // state without its files. With --overwrite, also begin the journal at once, so that a later
  // --resume knows that this run replaces the old output.
  if (from == nullptr && !run_.options.overwrite) journal_.clear();
  if (from == nullptr && run_.options.overwrite) {
    clear_abandoned(journal_, run_.options.output_prefix, run_.written);
    journal_.begin(run_.identity, stamps_of(run_.options.inputs));
  }
  if (run_.options.drops_duplicates_itself() && from == nullptr) {
    make_folder_of_all(run_.options.output_prefix);
  }
  open_run opened(run_, journal_, range, from);
  kept_ = true;
  opened.read_all();
  opened.expect_good_records();
  if (run_.options.partitions > 1) opened.join_partitions();
  {
    const auto timed = run_.clock.time(stage_clock::stage::sync);
    publish(opened.complete());
  }
  run_summary summary =
      run_.options.drops_duplicates_itself()
          ? summary_of(read_metas(run_.prefixes), run_.options, run_.prefixes)
          : summary_of(opened.state(), run_.options, run_.encoding, run_.prefixes);
  if (summary.stopped_before && opened.read_bytes() != 0) summary.read_bytes = opened.read_bytes();
  summary.busy = run_.clock.busy();
  if (run_.metrics != nullptr) run_.metrics->finish(opened.progress_at(summary.read_bytes, 0));
  return summary;
}

void run_in_progress::publish(const std::vector<sidecar_set>& sidecars) {
  for (std::size_t key = 0; key < run_.prefixes.size(); ++key) {
    publish_dataset(dataset_paths(run_.written[key]), sidecars.at(key));
    remove_part_files(run_.prefixes[key]);
  }
  if (run_.options.drops_duplicates_itself()) drop_duplicates();
  journal_.remove_finished();
  if (run_.options.drops_duplicates_itself()) {
    fault_point("publish");
    // Last: the journal says that there is a dataset in this folder.
    remove_folder_of_all(run_.options.output_prefix);
  }
}

// Merges the dataset that has all documents to the output. Whatever stops this, the next run does
// it again.
void run_in_progress::drop_duplicates() {
  const auto& all = run_.written;
  run_.progress.note("finding and dropping duplicates");
  try {
    write_without_duplicates(
        all,
        {.input = all.front().parent_path(),
         .output_prefix = run_.prefixes.front(),
         .overwrite = true,  // an old output was allowed, or this run wrote it before it was killed
         .stop = run_.options.stop,
         .if_stopped = "all documents are written, but duplicates are not dropped yet; pass "
                       "--resume to continue",
         .room_advice = "all documents are written, but no duplicate is dropped yet; free disk "
                        "space, then run the command again with --resume"},
        {.by = *run_.options.drop_duplicates,
         .memory_bytes = run_.options.duplicates_bytes,
         .of_one_run = true});
  } catch (const stopped&) {
    throw;
  } catch (...) {
    run_.progress.note_outcome(
        "all documents are written; pass --resume to drop the duplicates, or --overwrite to start "
        "again");
    throw;
  }
}

}  // namespace

encoder_options encoder_options_of(const tokenizer::tokenizer& tokenizer,
                                   const run_options& options) {
  encoder_options out{.keys = options.keys,
                      .append_eod = std::nullopt,
                      .dtype = formats::dtype_for_vocabulary(tokenizer.vocab_size()),
                      .on_bad_record = options.on_bad_record,
                      .sentences = options.sentences,
                      .conversations = options.conversations,
                      .giant_bytes = options.limits.giant_bytes,
                      .tokenizer_bytes = options.encoder_cache_bytes()};
  out.marks = options.most_tokens.has_value();
  out.digests = options.needs_digests();
  if (options.fim) {
    out.fim = std::make_shared<fim_plan>(*options.fim, tokenizer, options.inputs);
  }
  if (options.sample) {
    out.sampler = std::make_shared<record_sampler>(*options.sample, options.inputs);
  }
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
  const std::vector<std::filesystem::path> prefixes = output_prefixes(options);
  const encoder_options encoding = encoder_options_of(tokenizer, options);
  run_context context{.tokenizer = tokenizer,
                      .options = options,
                      .progress = progress,
                      .metrics = metrics,
                      .prefixes = prefixes,
                      .written = options.drops_duplicates_itself()
                                     ? prefixes_of_all(options.output_prefix, prefixes)
                                     : prefixes,
                      .encoding = encoding,
                      .identity = identity_of(tokenizer, encoding, options)};
  expect_folder(options.output_prefix);
  for (const auto& datasets : {prefixes, context.written}) {
    refuse_inputs_among(
        files_of_run(options.output_prefix, datasets, static_cast<std::size_t>(options.partitions)),
        options.inputs, "--output-prefix");
  }
  return run_in_progress(context).finish();
}

}  // namespace millrace::preprocess
