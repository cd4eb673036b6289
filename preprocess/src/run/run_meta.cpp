// SPDX-License-Identifier: Apache-2.0
#include "run/run_meta.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/formats/src.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>

#include "input/line_ends.hpp"
#include "record/fim_options.hpp"
#include "record/record_parser.hpp"
#include "record/sentence_splitter.hpp"

namespace millrace::preprocess {
namespace {

std::optional<std::string> stop_text_of(const run_progress& state, const run_options& options) {
  if (!state.stopped_before) return std::nullopt;
  const input_file& file = options.inputs[state.stopped_before->input];
  return stop_text(file.has_rows(), state.stopped_before->offset, display_path(file).string());
}

// Returns the bounds of a task's share and a checksum of the input names.
formats::share_bounds bounds_of(const task_share& share, std::span<const input_file> inputs) {
  constexpr std::byte zero{0};
  formats::share_bounds bounds{.begin = {share.begin.input, share.begin.offset},
                               .end = {share.end.input, share.end.offset}};
  for (const input_file& file : inputs) {
    const std::string name = display_path(file).string();
    bounds.names_crc32c = formats::crc32c(std::as_bytes(std::span(name)), bounds.names_crc32c);
    bounds.names_crc32c = formats::crc32c(std::span(&zero, 1), bounds.names_crc32c);
  }
  return bounds;
}

// Returns the contents of P.meta that follow from the settings of a run, without its results.
formats::dataset_meta told_meta(const tokenizer::tokenizer& tokenizer,
                                const encoder_options& encoding, const run_options& options,
                                std::size_t key) {
  formats::dataset_meta meta;
  meta.level = options.sentences ? "sentence" : "document";
  meta.key = meta.path = options.keys[key].name;
  meta.type = encoding.dtype;
  meta.append_eod = options.append_eod;
  meta.on_bad_record = name_of(options.on_bad_record);
  if (options.sentences) {
    meta.options.emplace_back("--lang", options.sentences->language);
    meta.options.emplace_back("--keep-newlines", options.sentences->keep_newlines ? "on" : "off");
    meta.options.emplace_back("ICU", icu_version());
  }
  if (options.conversations) {
    meta.options = options.conversations->settings;
    meta.mask.emplace();
  }
  if (options.fim) {
    for (auto& setting : settings_of(*options.fim)) meta.options.push_back(std::move(setting));
  }
  if (options.sample) {
    meta.options.emplace_back("--sample-rate", fmt::format("{}", options.sample->rate));
    meta.options.emplace_back("--sample-seed", std::to_string(options.sample->seed));
  }
  if (options.most_tokens) {
    meta.options.emplace_back(max_tokens_option, std::to_string(*options.most_tokens));
  }
  if (options.drop_duplicates) {
    meta.options.emplace_back(drop_duplicates_option, name_of(*options.drop_duplicates));
  }
  if (options.partitions > 1) {
    meta.options.emplace_back("--partitions", std::to_string(options.partitions));
  }
  meta.tokenizer = {.type = options.tokenizer_type,
                    .fingerprint = tokenizer.fingerprint(),
                    .vocab_size = tokenizer.vocab_size(),
                    .eod = tokenizer.eod(),
                    .flags = options.tokenizer_flags};
  if (options.checksums) meta.sum_version = formats::sum_version;
  if (options.provenance) meta.src_version = formats::src_version;
  if (options.is_one_of_tasks()) {
    const task_id& id = options.task->id;
    meta.tasks = formats::task_range{.first = id.index,
                                     .last = id.index,
                                     .of = id.of,
                                     .share = bounds_of(*options.task, options.inputs)};
  }
  return meta;
}

// Returns whether `found` has the same settings as `told`. Ignores the results and the bounds of
// the share. The version of P.src depends on which inputs a task has.
bool was_told(formats::dataset_meta found, const formats::dataset_meta& told) {
  if (found.tasks && told.tasks) found.tasks->share = told.tasks->share;
  drop_stop(found);
  if (found.src_version && told.src_version) found.src_version = told.src_version;
  found.inputs = told.inputs;
  found.counts = told.counts;
  found.bin_bytes = told.bin_bytes;
  found.sum_root = told.sum_root;
  if (found.mask && told.mask) {
    found.mask->trained = told.mask->trained;
    found.mask->root = told.mask->root;
  }
  return found == told;
}

// Checks that a finished task had the same share as this task. The shares can change whenever the
// name or size of an input changes.
void expect_share(const formats::dataset_meta& found, const formats::dataset_meta& told,
                  const std::filesystem::path& prefix) {
  if (!told.tasks || !found.tasks->share || found.tasks->share == told.tasks->share) return;
  throw config_error(
      fmt::format("--resume: {} was made from inputs with other names or sizes, so this task now "
                  "has another share of them; pass the same inputs, or --overwrite for all tasks",
                  prefix.string()));
}

// Returns whether the files are there that a merge needs, or that a dataset always has.
bool is_there(const std::filesystem::path& prefix, const run_options& options) {
  const dataset_paths paths(prefix);
  if (!is_file(paths.bin) || !is_file(paths.idx) || !is_file(paths.of(sidecar::meta))) return false;
  if (!options.is_one_of_tasks()) return true;
  return (!options.needs_cuts() || is_file(paths.of(sidecar::cuts))) &&
         (!options.needs_digests() || is_file(paths.of(sidecar::digests)));
}

// Returns whether `meta` describes the dataset at `paths`. Compares only the sizes of the .bin and
// the .idx.
bool is_of(const formats::dataset_meta& meta, const dataset_paths& paths) {
  const std::uint64_t idx_bytes = formats::mmidx_header_bytes +
                                  12 * static_cast<std::uint64_t>(meta.counts.sequences) +
                                  8 * (static_cast<std::uint64_t>(meta.counts.documents) + 1);
  const auto has_bytes = [](const std::filesystem::path& path, std::uint64_t bytes) {
    const auto status = io::status_if_there(path);
    return status && static_cast<std::uint64_t>(status->st_size) == bytes;
  };
  return has_bytes(paths.bin, meta.bin_bytes) && has_bytes(paths.idx, idx_bytes);
}

}  // namespace

const char* name_of(bad_record_policy policy) {
  switch (policy) {
    case bad_record_policy::skip:
      return "skip";
    case bad_record_policy::quarantine:
      return "quarantine";
    case bad_record_policy::fail:
      break;
  }
  return "fail";
}

std::optional<std::vector<input_part>> extents_of(const formats::dataset_meta& meta,
                                                  const run_options& options) {
  const std::vector<formats::input_extent>& found = meta.inputs;
  const task_share share = options.share();
  std::vector<input_part> parts;
  std::size_t next = 0;
  const bool ended_early = stop_of(meta) != nullptr;
  for (std::size_t i = share.begin.input; i < options.inputs.size(); ++i) {
    if (ended_early && next == found.size()) break;
    const input_file& file = options.inputs[i];
    const bool named =
        next < found.size() && formats::is_path_of(found[next].path, display_path(file).string());
    if (!share.has_start_of(i)) {
      // A task that begins inside a file may have read no line of that file.
      if (i != share.begin.input || !named ||
          found[next].begin < share.begin.offset + (file.has_rows() ? 0 : 1)) {
        continue;
      }
    } else if (!named || found[next].begin != 0) {
      return std::nullopt;
    }
    parts.push_back({i, found[next++]});
  }
  if (next != found.size()) return std::nullopt;
  return parts;
}

formats::dataset_meta meta_of(const tokenizer::tokenizer& tokenizer,
                              const encoder_options& encoding, const run_options& options,
                              const run_progress& state, std::size_t key,
                              const dataset_roots& roots) {
  formats::dataset_meta meta = told_meta(tokenizer, encoding, options, key);
  for (const std::size_t input : listed_inputs(options, state)) {
    const input_total& total = state.inputs.at(input);
    const input_file& file = options.inputs[input];
    if (meta.src_version && file.has_rows()) meta.src_version = formats::src_version_of_rows;
    meta.inputs.push_back({.path = display_path(file).string(),
                           .begin = total.begin,
                           .text_bytes = total.text_bytes,
                           .crc32c = total.crc32c,
                           .lines = total.lines,
                           .has_rows = file.has_rows()});
  }
  if (auto stop = stop_text_of(state, options)) {
    meta.options.emplace_back(stopped_before, *std::move(stop));
  }
  const dataset_state& output = state.outputs.wholes.at(key);
  const std::size_t kinds = options.conversations ? fault_kinds : text_fault_kinds;
  for (std::size_t kind = 0; kind < kinds; ++kind) {
    meta.counts.bad_records.emplace_back(fault_names[kind], 0);
  }
  set_counts(meta.counts, state.counts, output, encoding.dtype);
  meta.bin_bytes = output.bin_bytes;
  if (!roots.sum.empty()) meta.sum_root = roots.sum;
  if (meta.mask) {
    meta.mask->trained = static_cast<std::int64_t>(output.mask.trained);
    meta.mask->root = roots.mask;
  }
  return meta;
}

void pad_totals(run_progress& state, const run_options& options) {
  if (!state.stopped_before) state.inputs.resize(options.inputs.size());
}

std::vector<std::size_t> listed_inputs(const run_options& options, const run_progress& state) {
  const task_share share = options.share();
  std::vector<std::size_t> listed;
  const std::size_t end = state.stopped_before ? state.inputs.size() : options.inputs.size();
  for (std::size_t i = 0; i < end; ++i) {
    const bool read = i < state.inputs.size() && state.inputs[i].text_bytes != 0;
    if (share.has_start_of(i) || read) listed.push_back(i);
  }
  return listed;
}

std::optional<std::vector<formats::dataset_meta>> finished_outputs(
    std::span<const std::filesystem::path> prefixes, const tokenizer::tokenizer& tokenizer,
    const encoder_options& encoding, const run_options& options) {
  const auto exists = [&](const auto& prefix) { return is_there(prefix, options); };
  if (!std::ranges::all_of(prefixes, exists)) return std::nullopt;
  std::vector<formats::dataset_meta> metas;
  try {
    metas = read_metas(prefixes);
  } catch (const format_error&) {
    return std::nullopt;  // the caller reports that the output exists
  }
  for (std::size_t key = 0; key < metas.size(); ++key) {
    const auto told = told_meta(tokenizer, encoding, options, key);
    if (!was_told(metas[key], told)) return std::nullopt;
    expect_share(metas[key], told, prefixes[key]);
    if (!extents_of(metas[key], options) || !is_of(metas[key], dataset_paths(prefixes[key]))) {
      return std::nullopt;
    }
  }
  return metas;
}

run_summary summary_of(const std::vector<formats::dataset_meta>& metas, const run_options& options,
                       std::span<const std::filesystem::path> prefixes) {
  run_summary summary;
  summary.counts = record_counts_of(metas.front().counts);
  summary.duplicates = metas.front().counts.duplicates;
  summary.dtype = std::string(name(metas.front().type));
  summary.input_files = metas.front().inputs.size();
  summary.workers = options.threads();
  if (const std::string* stop = stop_of(metas.front())) summary.stopped_before = *stop;
  for (const formats::input_extent& input : metas.front().inputs)
    summary.input_bytes += input.text_bytes;
  summary.read_bytes = options.share().disk_bytes;
  for (std::size_t key = 0; key < prefixes.size(); ++key) {
    summary.outputs.push_back(
        {.prefix = prefixes[key].string(),
         .sequences = metas[key].counts.sequences,
         .documents = metas[key].counts.documents,
         .empty_documents = metas[key].counts.empty_documents,
         .tokens = metas[key].counts.tokens,
         .trained = metas[key].mask ? std::optional(metas[key].mask->trained) : std::nullopt,
         .bin_bytes = metas[key].bin_bytes});
  }
  return summary;
}

run_summary summary_of(const run_progress& state, const run_options& options,
                       const encoder_options& encoding,
                       std::span<const std::filesystem::path> prefixes) {
  run_summary summary;
  summary.counts = state.counts;
  summary.stopped_before = stop_text_of(state, options);
  summary.dtype = std::string(name(encoding.dtype));
  summary.input_files = listed_inputs(options, state).size();
  summary.workers = options.threads();
  for (const input_total& total : state.inputs) summary.input_bytes += total.text_bytes;
  summary.read_bytes = options.share().disk_bytes;
  for (std::size_t key = 0; key < prefixes.size(); ++key) {
    const dataset_state& output = state.outputs.wholes[key];
    summary.outputs.push_back(
        {.prefix = prefixes[key].string(),
         .sequences = output.sequences,
         .documents = output.documents,
         .empty_documents = output.empty_documents,
         .tokens =
             static_cast<std::int64_t>(output.bin_bytes / formats::size_bytes(encoding.dtype)),
         .trained = options.conversations
                        ? std::optional(static_cast<std::int64_t>(output.mask.trained))
                        : std::nullopt,
         .bin_bytes = output.bin_bytes});
  }
  return summary;
}

}  // namespace millrace::preprocess
