// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/dataset/detail/megatron/blend_cache.hpp>
#include <millrace/dataset/detail/megatron/blend_plan.hpp>
#include <millrace/dataset/detail/megatron/blend_recipe.hpp>
#include <millrace/dataset/detail/megatron/data_flags.hpp>
#include <millrace/dataset/detail/megatron/prepare_gpt_cache.hpp>
#include <millrace/formats/detail/json_writer.hpp>

#include "command_line.hpp"
#include "data_options.hpp"
#include "inspect.hpp"
#include "run_flags.hpp"
#include "tokenizer_description.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

constexpr const char* prepare_cache_help =
    R"(usage: inspect_dataset prepare-cache --data-path PREFIX ... --seq-length L
           --data-cache-path FOLDER --tokenizer-description FILE.json [OPTIONS]

Builds the index caches of Megatron, with the same names and bytes. Keeps valid
caches, fails on others. Pass paths, weights and --split just as to Megatron.

  --data-path [WEIGHT] PREFIX ...   data that --split divides into parts
  --split TEXT              weights of the parts (default: '969, 30, 1')
  --train-data-path, --valid-data-path, --test-data-path   data per part
  --data-args-path, --per-split-data-args-path FILE   data, named in a file
  --train-samples, --valid-samples, --test-samples N   (default: one epoch)
  --full-validation, --multiple-validation-sets   as in Megatron
  --mid-level-dataset-surplus X   extra samples of a blend (default: 0.005)
  --seq-length L            tokens per sample
  --seed N                  seed, 0 to 4294967295 (default: 1234)
  --blend-rounding twice|fused   rounding (default: twice); fused: as with FMA
  --data-cache-path FOLDER  folder of the caches; created if it is missing
  --tokenizer-description FILE.json   identifiers of Megatron's tokenizer;
                            without this flag, an error shows how to write FILE
  --no-extra-token          no token after each sample's L for its last label
  --keep-partial-validation  keep the last, incomplete validation sample
  --verify                  check all of an existing cache, not only samples
  --threads N               threads per dataset, 1 or 2 (default: 2)
  --json                    print one JSON object: datasets and blends, each
                            with part, samples, name, built, verified; datasets
                            also prefix, num_samples, epochs, tokens_per_epoch,
                            separate_last_epoch

  inspect_dataset prepare-cache --data-path a_text_document --seq-length 4096 \
      --data-cache-path cache --tokenizer-description tokenizer.json
)";

// Megatron's GPTDataset takes the identifiers from its config's tokenizer.
constexpr const char* description_recipe =
    "Megatron puts the identifiers of its tokenizer into the names of the caches. To write them to "
    "a file, add this line to train_valid_test_datasets_provider() in pretrain_gpt.py, after "
    "'config = ...', and start the training once: import json; "
    "json.dump(config.tokenizer.unique_identifiers, open(\"tokenizer.json\", \"w\"))";

std::int64_t number_of(const command_line& line, const char* flag, std::int64_t least,
                       std::int64_t most) {
  const std::int64_t value = *line.find<std::int64_t>(flag);
  if (value < least || value > most) {
    throw misuse(fmt::format("--{} {}: expected {} to {}", flag, value, least, most),
                 prepare_cache_help);
  }
  return value;
}

std::string required(const command_line& line, const char* flag) {
  const auto value = line.find<std::string>(flag);
  if (!value) throw misuse(fmt::format("--{} is required: a path", flag), prepare_cache_help);
  if (value->empty()) throw misuse(fmt::format("--{}: expected a path", flag), prepare_cache_help);
  return *value;
}

dataset::gpt_cache_options options_of(const command_line& line) {
  dataset::gpt_cache_options options;
  options.folder = required(line, "data-cache-path");
  if (!line.find<std::int64_t>("seq-length"))
    throw misuse("--seq-length is required: the tokens per sample", prepare_cache_help);
  options.sequence_length =
      number_of(line, "seq-length", 2, std::numeric_limits<std::int32_t>::max() - 1);
  options.random_seed = static_cast<std::uint32_t>(
      number_of(line, "seed", 0, std::numeric_limits<std::uint32_t>::max()));
  if (!line.find<std::string>("tokenizer-description")) {
    throw misuse(std::string("--tokenizer-description is required. ") + description_recipe,
                 prepare_cache_help);
  }
  options.tokenizer = tokenizer_description(required(line, "tokenizer-description"));
  options.add_extra_token = !line.values["no-extra-token"].as<bool>();
  options.drop_last_partial_validation_sequence =
      !line.values["keep-partial-validation"].as<bool>();
  options.threads = static_cast<int>(number_of(line, "threads", 1, 2));
  if (line.values["verify"].as<bool>()) options.check = dataset::check_level::full;
  return options;
}

/// The result of preparing a cache.
struct outcome {
  bool built;
  bool verified;

  const char* text() const noexcept { return built ? "built" : verified ? "verified" : "found"; }
};

outcome outcome_of(const dataset::gpt_cache_options& options, bool built) {
  return {built, !built && options.check == dataset::check_level::full};
}

struct prepared_dataset {
  dataset::prepared_gpt_cache cache;
  outcome what;
};

std::string sentence(const prepared_dataset& each) {
  const dataset::prepared_gpt_cache& one = each.cache;
  const auto& plan = one.plan;
  return fmt::format("{}: {} of {}, {}{}; {} {}\n", name(one.description.part),
                     grouped(plan.samples, "sample"), one.description.dataset_path,
                     grouped(plan.epochs, "epoch"),
                     plan.separate_last_epoch ? ", the last one shuffled separately" : "",
                     each.what.text(), one.description.cache_name());
}

void write_json(formats::json_writer& json, const outcome& what) {
  json.key("built").value(what.built).key("verified").value(what.verified).close('}');
}

void write_json(formats::json_writer& json, const prepared_dataset& each) {
  const dataset::prepared_gpt_cache& one = each.cache;
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
  json.key("name").value(one.description.cache_name());
  write_json(json, each.what);
}

struct prepared_blend {
  dataset::split_part part;
  std::int64_t samples;
  std::string name;
  outcome what;
};

std::string sentence(const prepared_blend& one) {
  return fmt::format("{}: {} of the blend; {} {}\n", name(one.part), grouped(one.samples, "sample"),
                     one.what.text(), one.name);
}

void write_json(formats::json_writer& json, const prepared_blend& one) {
  json.open('{').key("part").value(name(one.part)).key("samples").value(one.samples);
  json.key("name").value(one.name);
  write_json(json, one.what);
}

/// Reports the caches that were prepared. Text is printed immediately, JSON at the end.
class cache_report {
 public:
  explicit cache_report(bool as_json) : as_json_(as_json) {}

  void add(prepared_dataset one) {
    if (!as_json_) command::answer(sentence(one));
    datasets_.push_back(std::move(one));
  }
  void add(prepared_blend one) {
    if (!as_json_) command::answer(sentence(one));
    blends_.push_back(std::move(one));
  }
  void add_nothing(dataset::split_part part) const {
    if (as_json_) return;
    command::answer(fmt::format("{}: nothing to build, because --split gives this part no weight\n",
                                name(part)));
  }
  void finish() const {
    if (!as_json_) return;
    formats::json_writer json;
    json.open('{').key("datasets").open('[');
    for (const auto& one : datasets_) write_json(json, one);
    json.close(']').key("blends").open('[');
    for (const auto& one : blends_) write_json(json, one);
    command::answer(json.close(']').close('}').text() + '\n');
  }

 private:
  bool as_json_;
  std::vector<prepared_dataset> datasets_;
  std::vector<prepared_blend> blends_;
};

void prepare_part(const dataset::gpt_cache_options& options, const dataset::part_plan& plan,
                  dataset::split_part part, dataset::blend_rounding rounding, cache_report& out) {
  std::vector<std::int64_t> lengths;
  std::vector<dataset::python_json> identifiers;
  for (const dataset::planned_dataset& each : plan.datasets) {
    auto prepared = dataset::prepare_gpt_cache(options, each.prefix, part, each.num_samples);
    if (!prepared) return out.add_nothing(part);
    lengths.push_back(prepared->plan.samples);
    identifiers.push_back(prepared->description.identifiers());
    const outcome what = outcome_of(options, prepared->built);
    out.add(prepared_dataset{*std::move(prepared), what});
  }
  if (!plan.blended) return;
  const dataset::blend_recipe recipe(plan, lengths, part);
  const dataset::blend_cache cache(options.folder, recipe, std::move(identifiers), part);
  bool built = false;
  (void)cache.load_or_build(rounding, &built, options.check);
  out.add(prepared_blend{part, recipe.size(), blend_cache_name(cache.text(), part),
                         outcome_of(options, built)});
}

}  // namespace

int prepare_cache(const arguments& args) {
  po::options_description own;
  add_data_options(own);
  auto add = own.add_options();
  for (const char* flag : {"data-cache-path", "tokenizer-description", "blend-rounding"}) {
    add(flag, po::value<std::string>());
  }
  add("seq-length", po::value<std::int64_t>());
  add("seed", po::value<std::int64_t>()->default_value(1234));
  add("threads", po::value<std::int64_t>()->default_value(2));
  for (const char* flag : {"no-extra-token", "keep-partial-validation", "verify"}) {
    add(flag, po::bool_switch());
  }
  const auto line = parse_options(args, own, prepare_cache_help);
  if (!line) return command::exit_done;

  dataset::gpt_cache_options options = options_of(*line);
  const dataset::data_blends blends = dataset::resolve_data_flags(data_flags_of(*line));
  suggest_datasets(blends);
  options.split = blends.blend ? blends.split : std::nullopt;
  const dataset::data_plan plan =
      dataset::plan_data(blends, part_sizes_of(*line, prepare_cache_help));
  const dataset::blend_rounding rounding = rounding_of(*line, prepare_cache_help);
  cache_report out(line->json);
  for (const dataset::split_part part : dataset::split_parts) {
    const auto& of_part = plan[static_cast<std::size_t>(part)];
    if (of_part) prepare_part(options, *of_part, part, rounding, out);
  }
  out.finish();
  return command::exit_done;
}

}  // namespace millrace::inspect
