// SPDX-License-Identifier: Apache-2.0
#include "run/output_names.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>
#include <string>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

#include "input/task_split.hpp"
#include "output/output_check.hpp"
#include "output/part_joiner.hpp"
#include "process/fault_point.hpp"
#include "run/journal.hpp"

namespace millrace::preprocess {
namespace {

std::string dataset_name(const std::string& prefix, const std::string& key, bool sentences) {
  return fmt::format("{}_{}_{}", prefix, key, sentences ? "sentence" : "document");
}

}  // namespace

std::vector<std::filesystem::path> output_prefixes(const run_options& options) {
  std::vector<std::filesystem::path> prefixes;
  for (const text_key& key : options.keys) {
    if (key.name.find('/') != key.name.npos || key.name.find('\0') != key.name.npos) {
      throw config_error(fmt::format(
          "--json-keys {}: a key with '/' cannot be part of an output file name", key.name));
    }
    prefixes.emplace_back(
        dataset_name(options.output_prefix.string(), key.name, options.sentences.has_value()));
  }
  return prefixes;
}

std::vector<std::filesystem::path> output_prefixes(const std::filesystem::path& output_prefix,
                                                   const run_identity& run) {
  const bool sentences = std::ranges::any_of(run, [](const auto& entry) {
    return entry.first == "--split-sentences" && entry.second != "off";
  });
  std::vector<std::filesystem::path> prefixes;
  for (const auto& [name, value] : run) {
    if (name != "--json-keys" && name != "--text-key") continue;
    prefixes.emplace_back(dataset_name(output_prefix.string(), value, sentences));
  }
  return prefixes;
}

std::vector<std::filesystem::path> files_of_task(const run_options& options, const task_id& task) {
  run_options part;  // not a copy of `options`, which may have many inputs
  part.keys = options.keys;
  part.sentences = options.sentences;
  part.output_prefix = task_prefix(options.output_prefix, task);
  return files_of_run(part.output_prefix, output_prefixes(part));
}

std::function<void(const std::filesystem::path&)> refusal_of_outputs(const run_options& options) {
  auto files = files_of_run(options.output_prefix, output_prefixes(options),
                            static_cast<std::size_t>(options.partitions));
  std::set<std::string> names;
  for (const auto& file : files) names.insert(file.filename().string());
  return [files = std::move(files), names = std::move(names)](const std::filesystem::path& path) {
    if (!names.contains(path.filename().string())) return;
    const input_file input{.path = path};
    refuse_inputs_among(files, std::span(&input, 1), "--output-prefix");
  };
}

void expect_metrics_file(const std::filesystem::path& path, const run_options& options,
                         std::int64_t tasks) {
  auto outputs = files_of_run(options.output_prefix, output_prefixes(options),
                              static_cast<std::size_t>(options.partitions));
  for (std::int64_t task = 0; task < tasks; ++task) {
    const auto files = files_of_task(options, {task, tasks});
    outputs.insert(outputs.end(), files.begin(), files.end());
  }
  const std::vector<std::filesystem::path> mine = {path,
                                                   std::filesystem::path(path).concat(".partial")};
  for (const auto& file : mine) expect_own_file(file, outputs, "--metrics");
  refuse_inputs_among(mine, options.inputs, "--metrics");
}

void refuse_datasets_of_others(const run_options& options,
                               std::span<const std::filesystem::path> prefixes) {
  for (const auto& dataset : prefixes) {
    const std::string name = dataset.filename().string();
    for (std::size_t at = name.find('_'); at != name.npos; at = name.find('_', at + 1)) {
      const std::string other = name.substr(0, at);
      if (other == options.output_prefix.filename().string()) continue;
      const auto path = dataset.parent_path() / (other + ".journal");
      const auto identity = journal::identity_in(path);
      if (!identity) continue;
      const auto others = output_prefixes(dataset.parent_path() / other, *identity);
      if (std::ranges::find(others, dataset) == others.end()) continue;
      throw config_error(fmt::format(
          "{}: the unfinished run of {} writes this file too; finish that run with --resume, "
          "remove its journal and .partial files, or pass another --output-prefix",
          dataset.string(), path.string()));
    }
  }
}

namespace {

// The folder of the dataset with all documents, from which a run drops the duplicates.
std::filesystem::path folder_of_all(const std::filesystem::path& output_prefix) {
  return io::parent_folder(output_prefix) /
         fmt::format(".millrace-all-{}", output_prefix.filename().string());
}

}  // namespace

std::vector<std::filesystem::path> prefixes_of_all(
    const std::filesystem::path& output_prefix, std::span<const std::filesystem::path> prefixes) {
  std::vector<std::filesystem::path> all;
  for (const auto& prefix : prefixes) {
    all.push_back(folder_of_all(output_prefix) / prefix.filename());
  }
  return all;
}

void make_folder_of_all(const std::filesystem::path& output_prefix) {
  const auto folder = folder_of_all(output_prefix);
  remove_folder_of_all(output_prefix);
  std::error_code problem;
  std::filesystem::create_directory(folder, problem);
  if (problem) throw io_error(folder, "mkdir", problem.value());
  io::sync_folder(io::parent_folder(output_prefix));
}

void remove_folder_of_all(const std::filesystem::path& output_prefix) {
  const auto folder = folder_of_all(output_prefix);
  std::error_code problem;
  std::filesystem::remove_all(folder, problem);
  if (problem) throw io_error(folder, "remove", problem.value());
}

namespace {

std::int64_t tasks_of(const run_identity& run) {
  const auto entry = std::ranges::find(run, tasks_entry, &run_identity::value_type::first);
  std::int64_t tasks = 0;  // 0: a single process wrote the whole datasets
  if (entry != run.end()) {
    const std::string& value = entry->second;
    std::from_chars(value.data(), value.data() + value.size(), tasks);
  }
  return tasks;
}

bool any_is_there(std::span<const std::filesystem::path> files) {
  return std::ranges::any_of(
      files, [](const auto& path) { return io::is_there(path, io::links::are_not_followed); });
}

}  // namespace

void remove_task_parts(const std::filesystem::path& output_prefix, const run_identity& run) {
  const std::int64_t tasks = tasks_of(run);
  for (std::int64_t task = 0; task < tasks; ++task) {
    fault_point("parts");
    const auto prefix = task_prefix(output_prefix, {task, tasks});
    const auto files = files_of_run(prefix, output_prefixes(prefix, run));
    if (!any_is_there(files)) continue;
    // Opening the journal locks the part, and throws if another process is writing the part. Clear
    // the journal before you remove the files, because a saved state must not outlive its files.
    journal part(prefix, journal::start::afresh);
    part.clear();
    for (const auto& path : files) {
      if (path != part.path()) io::remove_if_exists(path);
    }
    part.remove();
  }
}

void clear_abandoned(journal& journal, const std::filesystem::path& output_prefix,
                     std::span<const std::filesystem::path> kept) {
  const auto run = journal::identity_in(journal.path());
  if (run) remove_task_parts(output_prefix, *run);
  journal.clear();  // before the files are removed: a state must not outlive its files
  remove_folder_of_all(output_prefix);
  if (!run) return;
  for (const auto& dataset : output_prefixes(output_prefix, *run)) {
    if (std::ranges::find(kept, dataset) != kept.end()) continue;
    for (const auto& path : files_of_run(output_prefix, std::span(&dataset, 1))) {
      if (path.extension() == ".partial") io::remove_if_exists(path);
    }
    remove_part_files(dataset);
  }
}

}  // namespace millrace::preprocess
