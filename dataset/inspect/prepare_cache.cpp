// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/json_writer.hpp>
#include <millrace/dataset/megatron/prepare_gpt_cache.hpp>
#include <millrace/dataset/megatron/read_python_json.hpp>
#include <millrace/io/file_mapping.hpp>

#include "command_line.hpp"
#include "inspect.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

constexpr const char* help =
    R"(usage: inspect_dataset prepare-cache --data-path PREFIX [--split TEXT] --seq-length L
           --data-cache-path FOLDER --tokenizer-description FILE.json [OPTIONS]
       inspect_dataset prepare-cache --train-data-path PREFIX --valid-data-path PREFIX ...

Builds the index caches that Megatron's first rank would build before it trains, with the same names
and bytes. What is there already, whole and fitting, is left alone. Paths and --split enter the
names: give them as the run does.

  --data-path PREFIX         the dataset that is split into train, valid and test
  --split TEXT               how; without it '969, 30, 1'
  --train-data-path PREFIX   instead, and --valid-data-path, --test-data-path: one for each part
  --train-samples N          and --valid-samples, --test-samples; left out: one epoch
  --full-validation          validation is one epoch, whatever --valid-samples says
  --seq-length L             tokens of a sample
  --seed N                   0 to 4294967295; 1234 without it
  --data-cache-path FOLDER   where the files go; it is made if it is not there
  --tokenizer-description FILE.json
                             json.dumps(tokenizer.unique_identifiers), of Megatron's tokenizer
  --no-extra-token           samples have no token beside their L for the last label
  --keep-partial-validation  the last sample of validation may be partial
  --threads N                1 or 2 for each dataset; 2 without it
  --json                     one JSON object: datasets, each with part, prefix, num_samples,
                             samples, epochs, tokens_per_epoch, separate_last_epoch, name, built

  inspect_dataset prepare-cache --data-path web_text_document --seq-length 4096 \
      --train-samples 1000000 --data-cache-path cache --tokenizer-description tokenizer.json
)";

constexpr std::array<const char*, 3> path_flags = {"train-data-path", "valid-data-path",
                                                   "test-data-path"};
constexpr std::array<const char*, 3> sample_flags = {"train-samples", "valid-samples",
                                                     "test-samples"};

/// A dataset's part to be prepared.
struct task {
  dataset::split_part part;
  std::string prefix;
  std::optional<std::int64_t> num_samples;
};

std::int64_t number_of(const command_line& line, const char* flag, std::int64_t least,
                       std::int64_t most) {
  const std::int64_t value = *line.find<std::int64_t>(flag);
  if (value < least || value > most) {
    throw misuse(fmt::format("--{} is {}, expected {} to {}", flag, value, least, most), help);
  }
  return value;
}

template <class T>
T required(const command_line& line, const char* flag) {
  const auto value = line.find<T>(flag);
  if (!value) throw misuse(fmt::format("--{} is missing", flag), help);
  return *value;
}

dataset::python_json tokenizer_description(const std::string& path) {
  const io::file_mapping file{std::filesystem::path(path)};
  const auto bytes = file.bytes();
  try {
    auto json =
        dataset::read_python_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!json.is_object()) throw format_error(0, "expected a JSON object");
    return json;
  } catch (const format_error& e) {
    throw e.in(path);
  }
}

dataset::gpt_cache_options options_of(const command_line& line) {
  dataset::gpt_cache_options options;
  options.folder = required<std::string>(line, "data-cache-path");
  (void)required<std::int64_t>(line, "seq-length");
  options.sequence_length =
      number_of(line, "seq-length", 2, std::numeric_limits<std::int32_t>::max() - 1);
  options.random_seed = static_cast<std::uint32_t>(
      number_of(line, "seed", 0, std::numeric_limits<std::uint32_t>::max()));
  options.tokenizer = tokenizer_description(required<std::string>(line, "tokenizer-description"));
  options.add_extra_token = !line.values["no-extra-token"].as<bool>();
  options.drop_last_partial_validation_sequence =
      !line.values["keep-partial-validation"].as<bool>();
  options.threads = static_cast<int>(number_of(line, "threads", 1, 2));
  return options;
}

/// What the flags ask for; sets the split.
std::vector<task> tasks_of(const command_line& line, dataset::gpt_cache_options& options) {
  std::vector<task> tasks;
  const auto whole = line.find<std::string>("data-path");
  const auto split = line.find<std::string>("split");
  for (std::size_t i = 0; i < path_flags.size(); ++i) {
    const auto part = dataset::split_parts[i];
    const auto own = line.find<std::string>(path_flags[i]);
    if (own && whole) {
      throw misuse(fmt::format("--data-path and --{}: expected one of the two", path_flags[i]),
                   help);
    }
    if (own && split) {
      throw misuse(
          fmt::format("--split and --{}: a dataset of one part is not split", path_flags[i]), help);
    }
    std::optional<std::int64_t> samples;
    if (line.find<std::int64_t>(sample_flags[i])) {
      samples = number_of(line, sample_flags[i], 0, std::numeric_limits<std::int64_t>::max());
    }
    const bool full =
        part == dataset::split_part::valid && line.values["full-validation"].as<bool>();
    if (full) samples.reset();
    if (own || whole) tasks.push_back({part, own ? *own : *whole, samples});
  }
  if (tasks.empty()) throw misuse("which dataset? --data-path is missing", help);
  if (whole) options.split = split.value_or(std::string(dataset::split_matrix::default_text));
  return tasks;
}

std::string sentence(const dataset::prepared_gpt_cache& one) {
  const auto& plan = one.plan;
  return fmt::format("{}: {} of {}, {}{}; {} {}\n", name(one.description.part),
                     counted(plan.samples, "sample"), one.description.dataset_path,
                     counted(plan.epochs, "epoch"),
                     plan.separate_last_epoch ? ", the last shuffled apart" : "",
                     one.built ? "built" : "found", one.description.cache_name());
}

void write_json(command::json_writer& json, const dataset::prepared_gpt_cache& one) {
  json.open('{').key("part").value(name(one.description.part));
  json.key("prefix").value(one.description.dataset_path).key("num_samples");
  if (one.description.num_samples) {
    json.value(*one.description.num_samples);
  } else {
    json.null();
  }
  json.key("samples").value(one.plan.samples).key("epochs").value(one.plan.epochs);
  json.key("tokens_per_epoch").value(one.plan.tokens_per_epoch);
  json.key("separate_last_epoch").value(one.plan.separate_last_epoch);
  json.key("name").value(one.description.cache_name()).key("built").value(one.built).close('}');
}

}  // namespace

int prepare_cache(const arguments& args) {
  po::options_description own;
  auto add = own.add_options();
  for (const char* flag : {"data-path", "split", "data-cache-path", "tokenizer-description"}) {
    add(flag, po::value<std::string>());
  }
  for (const char* flag : path_flags) add(flag, po::value<std::string>());
  for (const char* flag : sample_flags) add(flag, po::value<std::int64_t>());
  add("seq-length", po::value<std::int64_t>());
  add("seed", po::value<std::int64_t>()->default_value(1234));
  add("threads", po::value<std::int64_t>()->default_value(2));
  for (const char* flag : {"no-extra-token", "keep-partial-validation", "full-validation"}) {
    add(flag, po::bool_switch());
  }
  const auto line = parse_options(args, own, help);
  if (!line) return command::exit_done;

  dataset::gpt_cache_options options = options_of(*line);
  const std::vector<task> tasks = tasks_of(*line, options);
  command::json_writer json;
  json.open('{').key("datasets").open('[');
  for (const task& each : tasks) {
    const auto prepared =
        dataset::prepare_gpt_cache(options, each.prefix, each.part, each.num_samples);
    if (line->json && prepared) write_json(json, *prepared);
    if (line->json) continue;
    command::answer(
        prepared ? sentence(*prepared)
                 : fmt::format("{}: nothing, as --split gives it no weight\n", name(each.part)));
  }
  if (line->json) command::answer(json.close(']').close('}').text() + '\n');
  return command::exit_done;
}

}  // namespace millrace::inspect
