// SPDX-License-Identifier: Apache-2.0
#include "run/open_run.hpp"

#include <algorithm>

#include <fmt/format.h>

#include <millrace/command/text.hpp>
#include <millrace/io/file_ops.hpp>

#include "output/part_joiner.hpp"
#include "output/space_guard.hpp"
#include "process/stop_flag.hpp"
#include "run/run_identity.hpp"
#include "run/run_meta.hpp"

namespace millrace::preprocess {
namespace {

// Returns whether the output exists, or true if that cannot be determined.
bool may_have_output(const std::filesystem::path& prefix) {
  const dataset_paths paths(prefix);
  try {
    return io::is_there(paths.bin) || io::is_there(paths.idx);
  } catch (const io_error&) {
    return true;
  }
}

commit_options commit_options_of(const run_context& run) {
  // A run that drops duplicates does not know its tokens yet.
  const bool may_end = !run.options.drop_duplicates;
  return {.prefixes = run.written,
          .dataset = {.type = run.encoding.dtype,
                      .checksums = run.options.checksums,
                      .provenance = run.options.provenance,
                      .quarantine = run.options.on_bad_record == bad_record_policy::quarantine,
                      .mask = run.encoding.conversations != nullptr,
                      .cut_keys = run.options.needs_cuts() ? run.written.size() : 0,
                      .digests = run.options.needs_digests()},
          .partitions = static_cast<std::size_t>(run.options.partitions),
          .on_bad_record = run.options.on_bad_record,
          .most_bad_records = run.options.most_bad_records,
          .most_raw_bytes = run.options.limits.giant_bytes,
          .sampler = run.encoding.sampler,
          .most_tokens = may_end ? run.options.most_tokens : std::nullopt,
          .begin = run.options.share().begin};
}

}  // namespace

open_run::open_run(run_context& run, journal& journal, const read_range& range,
                   const run_progress* from)
    : run_(run),
      journal_(journal),
      range_(range),
      committer_(run.options.inputs, range, commit_options_of(run), from),
      checkpoints_(committer_, journal, run.options.checkpoint_period) {
  if (from == nullptr && !journal.identity()) {
    journal.begin(run.identity, stamps_of(run.options.inputs));
  } else if (from == nullptr) {
    journal.sync_names();
  }
  if (from == nullptr && run.options.drops_duplicates_itself()) {  // another folder
    io::sync_folder(io::parent_folder(run.written.front()));
  }
  committer_.keep();
}

progress_state open_run::progress_at(std::uint64_t read_bytes,
                                     std::int64_t blocks_in_flight) const {
  const run_progress& state = committer_.state();
  progress_state now{.documents = state.counts.documents,
                     .read_bytes = read_bytes,
                     .bad_records = state.counts.bad_record_total(),
                     .blocks_in_flight = blocks_in_flight,
                     .busy = run_.clock.busy()};
  for (const input_total& total : state.inputs) now.input_bytes += total.text_bytes;
  const auto& [wholes, parts] = state.outputs;
  for (const dataset_state& output : parts.empty() ? wholes : parts) {
    now.tokens +=
        static_cast<std::int64_t>(output.bin_bytes / formats::size_bytes(run_.encoding.dtype));
    now.output_bytes += output.output_bytes();
  }
  return now;
}

void open_run::tell(const stage_report& report) {
  read_bytes_ = report.read_bytes;
  for (const std::string& note : report.notes) run_.progress.note(note);
  const progress_state now = progress_at(report.read_bytes, report.blocks_in_flight);
  run_.progress.update(now);
  if (run_.metrics == nullptr) return;
  run_.metrics->update(now);
  if (const auto note = run_.metrics->take_note()) run_.progress.note(*note);
}

void open_run::read_all() {
  if (committer_.state().has_ended()) return;  // an earlier run read all
  space_guard space(run_.options.inputs, run_.options.share().disk_bytes);
  const auto after_commit = [&](const stage_report& report) {
    tell(report);
    // Before a task has read its first line, it does not know where its share begins, so it has no
    // state to save.
    if (!committer_.is_untouched()) checkpoints_.update();
    space.update(committer_, report.read_bytes, report.giant);
  };
  bool ended = false;
  try {
    ended = run_stages(run_.tokenizer, run_.encoding, run_.options, range_, committer_, run_.clock,
                       after_commit);
    checkpoints_.collect();
  } catch (const format_error& fault) {
    committer_.note_damage(fault);
    give_up();
    throw;
  } catch (...) {
    give_up();
    throw;
  }
  if (ended) {
    committer_.note_all_read();
    return;
  }
  if (committer_.is_untouched()) {
    give_up();
    throw stopped("stopped before there was anything to save");
  }
  checkpoints_.make_safe();
  throw stopped(fmt::format("stopped, with {} safe; pass --resume to continue",
                            command::counted(committer_.state().counts.documents, "document")));
}

// For a task, prints a note instead of throwing, because all bad records of the whole run may be in
// the share of one task. The merge checks all tasks together.
void open_run::expect_good_records() {
  const record_counts& counts = committer_.state().counts;
  const std::int64_t bad = counts.bad_record_total();
  if (counts.documents != 0 || bad == 0 || committer_.is_full()) return;
  const std::string& first = committer_.first_fault();
  if (run_.options.is_one_of_tasks()) {
    run_.progress.note("every record of this task is bad; its part has no documents");
    return;
  }
  journal_.clear();  // before the files are removed: a state must not outlive its files
  forget_files();
  for (const auto& prefix : run_.prefixes) remove_part_files(prefix);
  journal_.remove();
  throw error(fmt::format("every record is bad, so nothing was written: {}{}{}",
                          command::counted(bad, "record"), first.empty() ? "" : "; the first is ",
                          first));
}

void open_run::forget_files() {
  committer_.forget();
  if (!run_.options.drops_duplicates_itself()) return;
  std::error_code ignored;
  std::filesystem::remove_all(io::parent_folder(run_.written.front()), ignored);
}

// Keeps everything that was committed. If nothing was committed, removes the files, and also the
// journal unless an old output may exist. In that case, the journal records that this run was meant
// to replace the old output.
void open_run::give_up() {
  if (committer_.is_untouched()) {
    forget_files();
    if (std::ranges::none_of(run_.prefixes, may_have_output)) journal_.discard();
    return;
  }
  try {
    checkpoints_.make_safe();
  } catch (const error&) {
    run_.progress.note_outcome(
        "the finished work up to the last checkpoint was kept; pass --resume to continue, or "
        "--overwrite to start again");
    return;
  }
  run_.progress.note_outcome(fmt::format(
      "the finished work was kept: {}; pass --resume to continue, or --overwrite to start again",
      command::counted(committer_.state().counts.documents, "document")));
}

void open_run::join_partitions() {
  run_.progress.note(fmt::format("joining {} partitions", run_.options.partitions));
  run_progress state = committer_.state();
  pad_totals(state, run_.options);
  const std::vector<formats::src_input> inputs = inputs_of(state);
  std::uint64_t metas = 0;
  for (std::size_t key = 0; key < run_.prefixes.size(); ++key) {
    metas += meta_bytes(meta_of(run_.tokenizer, run_.encoding, run_.options, state, key, {}));
  }
  bool joined = false;
  try {
    checkpoints_.make_safe();  // a resumed run must know that there is nothing more to read
    reserve_for_joining(committer_.outputs(), inputs, metas);
    const auto timed = run_.clock.time(stage_clock::stage::write);
    joined = committer_.join_partitions(inputs, run_.options.limits.block_bytes, [&] {
      checkpoints_.update();
      return run_.options.stop == nullptr || run_.options.stop->load() == 0;
    });
    checkpoints_.collect();
  } catch (...) {
    give_up();
    throw;
  }
  if (joined) return;
  checkpoints_.make_safe();
  throw stopped(stop_message(run_.options.stop->load(),
                             "the partitions are not joined yet; pass --resume to join the rest"));
}

std::vector<sidecar_set> open_run::complete() {
  std::vector<sidecar_set> sidecars;
  try {
    sidecars = finish_files();
    journal_.write_finished(sidecars);
  } catch (...) {
    // The last saved state is still valid: finish_files() only appends data after the data that the
    // state describes, or writes data that the next run writes again.
    give_up();
    throw;
  }
  return sidecars;
}

// Returns the inputs for P.src.
std::vector<formats::src_input> open_run::inputs_of(const run_progress& state) const {
  std::vector<formats::src_input> inputs;
  for (const std::size_t input : listed_inputs(run_.options, state)) {
    const input_file& file = run_.options.inputs[input];
    inputs.push_back({display_path(file).string(),
                      file.has_rows() ? formats::src_unit::rows : formats::src_unit::bytes});
  }
  return inputs;
}

std::vector<sidecar_set> open_run::finish_files() {
  run_progress state = committer_.state();
  pad_totals(state, run_.options);
  const std::vector<formats::src_input> inputs = inputs_of(state);
  std::vector<sidecar_set> sidecars;
  std::size_t key = 0;
  committer_.end_cuts();
  for (dataset_writer& writer : committer_.writers()) {
    const dataset_roots roots = writer.finish(inputs);
    const auto meta = meta_of(run_.tokenizer, run_.encoding, run_.options, state, key++, roots);
    writer.finish_meta(to_json(meta));
    sidecars.push_back(writer.sidecars());
  }
  return sidecars;
}

}  // namespace millrace::preprocess
