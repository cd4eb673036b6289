// SPDX-License-Identifier: Apache-2.0
#include "run/output_names.hpp"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include <millrace/error.hpp>

#include "run/journal.hpp"

namespace millrace::preprocess {
namespace {

std::string dataset_name(const std::string& prefix, const std::string& key, bool sentences) {
  return fmt::format("{}_{}_{}", prefix, key, sentences ? "sentence" : "document");
}

bool is_dataset_of(const std::string& name, const std::string& prefix, const run_identity& run) {
  const bool sentences = std::ranges::any_of(run, [](const auto& entry) {
    return entry.first == "--split-sentences" && entry.second != "off";
  });
  return std::ranges::any_of(run, [&](const auto& entry) {
    return (entry.first == "--json-keys" || entry.first == "--text-key") &&
           dataset_name(prefix, entry.second, sentences) == name;
  });
}

}  // namespace

std::vector<std::filesystem::path> output_prefixes(const run_options& options) {
  std::vector<std::filesystem::path> prefixes;
  for (const text_key& key : options.keys) {
    if (key.name.find('/') != key.name.npos || key.name.find('\0') != key.name.npos) {
      throw config_error(fmt::format(
          "--json-keys {}: a key with '/' cannot be part of the name of its output file",
          key.name));
    }
    prefixes.emplace_back(
        dataset_name(options.output_prefix.string(), key.name, options.sentences.has_value()));
  }
  return prefixes;
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
      if (!identity || !is_dataset_of(name, other, *identity)) continue;
      throw config_error(fmt::format(
          "{}: the run of {}, which did not finish, writes it too; finish that one with --resume, "
          "or remove its journal and .partial files, or name another --output-prefix",
          dataset.string(), path.string()));
    }
  }
}

}  // namespace millrace::preprocess
