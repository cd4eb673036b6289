// SPDX-License-Identifier: Apache-2.0
#include "merge/merge.hpp"

#include <cerrno>
#include <cstddef>
#include <set>
#include <string>
#include <system_error>
#include <vector>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/io/file_ops.hpp>

#include "merge/drop_duplicates.hpp"
#include "merge/merge_input.hpp"
#include "merge/merge_sidecars.hpp"
#include "merge/merge_target.hpp"
#include "merge/merged_dataset.hpp"
#include "merge/place_part.hpp"
#include "output/dataset_paths.hpp"
#include "output/output_check.hpp"

namespace millrace::preprocess {

stop_flag stop_flag_of(const merge_options& options) {
  return {options.stop, options.if_stopped};
}

parts_to_merge::parts_to_merge(const merge_options& options, const stop_flag& stop)
    : all_(datasets_in(options.input)) {
  expect_folder(options.output_prefix);
  expect_another_folder(options.output_prefix, options.input);
  used_.prefixes = all_;
  if (const auto by = duplicates_of_tasks(all_)) {
    if (options.drop_duplicates && by != duplicates_by::ids) {
      throw config_error(
          "--drop-duplicates: these tasks drop duplicates by their text, which the merge does "
          "without this flag; omit it, and merge the output alone with it to drop more by ids");
    }
    duplicates_ = {.by = *by, .of_one_run = true};
  } else if (options.drop_duplicates) {
    duplicates_.emplace();
  } else if (options.memory_bytes) {
    throw config_error(
        "--memory is for finding duplicates, and none are dropped: these are no tasks with "
        "--drop-duplicates; omit --memory, or pass --drop-duplicates");
  }
  if (duplicates_ && options.memory_bytes) duplicates_->memory_bytes = *options.memory_bytes;
  if (duplicates_ && duplicates_->of_one_run) return;  // they decide where the run ends
  if (!have_budget(all_)) return;
  if (!options.overwrite) refuse_existing(options.output_prefix);
  folder_.emplace(io::parent_folder(options.output_prefix), merge_folder(options.output_prefix));
  used_ = within_budget(all_, folder_->path(), stop);
}

merge_summary parts_to_merge::drop_duplicates(const merge_options& options) {
  if (!options.overwrite) refuse_existing(options.output_prefix);
  without_duplicates_.emplace(io::parent_folder(options.output_prefix),
                              merge_folder(options.output_prefix));
  merge_options into = options;
  into.output_prefix = without_duplicates_->path() / options.output_prefix.filename();
  merge_summary summary = write_without_duplicates(used_.prefixes, into, *duplicates_);
  used_.prefixes = {into.output_prefix};
  if (summary.stopped_before) used_.stopped_before = summary.stopped_before;
  return summary;
}

merge_summary merge(const merge_options& options) {
  const stop_flag stop = stop_flag_of(options);
  const parts_to_merge parts(options, stop);
  if (parts.duplicates()) {
    merge_summary summary = write_without_duplicates(parts.used(), options, *parts.duplicates());
    summary.prefixes = parts.all();
    if (parts.stopped_before()) summary.stopped_before = parts.stopped_before();
    return summary;
  }
  const std::vector<std::filesystem::path>& prefixes = parts.used();
  merge_summary summary;
  summary.prefixes = parts.all();
  summary.stopped_before = parts.stopped_before();
  const merge_input first(prefixes.front());
  summary.type = first.view().type;
  const merged_sidecars sidecars = plan_sidecars(prefixes);
  summary.dropped = sidecars.dropped;
  // Compare all headers before the first byte is copied, because copying may take hours.
  merged_layout layout{.type = summary.type, .multimodal = options.multimodal, .total = {}};
  std::vector<dataset_extent> extents;
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    stop.check();
    const merge_input input(prefixes[i]);
    expect_fits(input, first, options.multimodal);
    if (sidecars.meta) expect_meta_of(input, sidecars.parts[i]);
    extents.push_back(extent_of(input.view()));
    layout.total += extents.back();
  }

  merged_dataset whole(options.output_prefix, layout, prefixes, sidecars, options.room_advice,
                       stop);
  if (!options.overwrite) refuse_existing(options.output_prefix);
  merge_target target(whole.paths(), layout, sidecars.sum.has_value());
  dataset_extent before;
  for (std::size_t i = 0; i < prefixes.size(); ++i) {
    const merge_input input = reopen(prefixes[i], extents[i]);
    expect_fits(input, first, options.multimodal);  // again: the input may have been replaced
    place_part(input, before, target, stop);
    before += extents[i];
  }
  target.write_frame();
  if (sidecars.sum) target.put_joined(target.bin().pieces, target.idx().pieces);
  target.sync(stop);
  whole.append_sidecars(prefixes, stop);
  whole.finish(stop);
  stop.check();
  publish_dataset(whole.paths(), whole.sidecars());
  if (sidecars.meta) summary.tasks = sidecars.meta->tasks;
  summary.sequences = static_cast<std::int64_t>(layout.total.sequences);
  summary.documents = static_cast<std::int64_t>(layout.total.documents);
  summary.tokens =
      static_cast<std::int64_t>(layout.total.bin_bytes / formats::size_bytes(layout.type));
  return summary;
}

namespace {

// Returns the prefix of the dataset that `file` belongs to. A file's name is the prefix of its
// dataset plus one suffix: .bin, .idx or the suffix of a sidecar.
std::filesystem::path prefix_of(const std::filesystem::path& file) {
  // A dangling link means that a shard is missing, so it must not be ignored.
  if (!is_file(file)) throw io_error(file, "open (not a regular file)", EINVAL);
  auto prefix = file;
  prefix.replace_extension();
  const dataset_paths paths(prefix);
  for (const auto& path : {paths.bin, paths.idx}) {
    if (is_file(path)) continue;
    if (file.extension() == ".partial" || file.extension() == ".journal") {
      throw config_error(fmt::format(
          "{} belongs to an unfinished run; finish that run with --resume, or remove its files",
          file.string()));
    }
    throw config_error(
        fmt::format("{} belongs to no dataset, because there is no {}; move it out of the folder, "
                    "or add the missing file",
                    file.string(), path.string()));
  }
  return prefix;
}

}  // namespace

std::vector<std::filesystem::path> datasets_in(const std::filesystem::path& folder) {
  std::set<std::string> prefixes;
  std::error_code error;
  if (!std::filesystem::is_directory(folder, error) &&
      (!error || error.value() == ENOENT || error.value() == ENOTDIR)) {
    throw config_error(
        fmt::format("--input {}: this is not a folder; expected the folder that holds the datasets",
                    folder.string()));
  }
  std::filesystem::directory_iterator entries(folder, error);
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) {
    std::error_code ignored;
    if (!entries->is_directory(ignored)) prefixes.insert(prefix_of(entries->path()).string());
  }
  if (error) throw io_error(folder, "opendir", error.value());
  if (prefixes.empty()) {
    throw config_error(
        fmt::format("--input {}: the folder has no .bin/.idx pair", folder.string()));
  }
  return {prefixes.begin(), prefixes.end()};
}

void expect_another_folder(const std::filesystem::path& output_prefix,
                           const std::filesystem::path& input) {
  const auto output = io::identity_of(io::parent_folder(output_prefix));
  if (!output || output != io::identity_of(input)) return;
  throw config_error(
      fmt::format("--output-prefix {}: this is the input folder, so the next merge would also read "
                  "the output; choose another folder",
                  output_prefix.string()));
}

}  // namespace millrace::preprocess
