// SPDX-License-Identifier: Apache-2.0
#include "data_options.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

constexpr std::array word_flags = {"data-path", "train-data-path", "valid-data-path",
                                   "test-data-path"};
constexpr std::array text_flags = {"data-args-path", "per-split-data-args-path", "split",
                                   "mid-level-dataset-surplus"};
constexpr std::array switches = {"full-validation", "multiple-validation-sets"};
constexpr std::array samples_flags = {"train-samples", "valid-samples", "test-samples"};

}  // namespace

void add_data_options(po::options_description& own) {
  auto add = own.add_options();
  for (const char* flag : word_flags)
    add(flag, po::value<std::vector<std::string>>()->multitoken());
  for (const char* flag : text_flags) add(flag, po::value<std::string>());
  for (const char* flag : switches) add(flag, po::bool_switch());
  for (const char* flag : samples_flags) add(flag, po::value<std::int64_t>());
}

dataset::data_flags data_flags_of(const command_line& line) {
  dataset::data_flags flags;
  const auto set = [&](const char* flag, const std::vector<std::string>& values) {
    (void)dataset::set_data_flag(flags, "--" + std::string(flag), values);
  };
  for (const char* flag : word_flags) {
    if (const auto words = line.find<std::vector<std::string>>(flag)) set(flag, *words);
  }
  for (const char* flag : text_flags) {
    if (const auto text = line.find<std::string>(flag)) set(flag, {*text});
  }
  for (const char* flag : switches) {
    if (line.values[flag].as<bool>()) set(flag, {});
  }
  return flags;
}

void suggest_datasets(const dataset::data_blends& data) {
  const auto suggest = [](const std::optional<dataset::blend_list>& list) {
    if (!list) return;
    for (const std::string& prefix : list->prefixes) suggest_dataset(prefix);
  };
  suggest(data.blend);
  for (const auto& list : data.per_part) suggest(list);
}

dataset::part_sizes part_sizes_of(const command_line& line, const std::string& help) {
  dataset::part_sizes sizes;
  for (std::size_t p = 0; p < sizes.size(); ++p) {
    sizes[p] = line.find<std::int64_t>(samples_flags[p]);
    if (!sizes[p] || *sizes[p] >= 0) continue;
    throw misuse(fmt::format("--{} {}: expected 0 or more", samples_flags[p], *sizes[p]), help);
  }
  return sizes;
}

const char* samples_flag(dataset::split_part part) {
  return samples_flags[static_cast<std::size_t>(part)];
}

}  // namespace millrace::inspect
