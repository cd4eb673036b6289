// SPDX-License-Identifier: Apache-2.0
#include "run_flags.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/grouped.hpp>
#include <millrace/dataset/detail/megatron/blend_plan.hpp>
#include <millrace/dataset/detail/megatron/data_flags.hpp>
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/dataset/detail/run/batch_steps.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/instant_run.hpp>
#include <millrace/dataset/megatron_run.hpp>
#include <millrace/dataset/packed_run.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>
#include <millrace/io/file_mapping.hpp>

#include "data_options.hpp"
#include "instant_parts.hpp"
#include "state_flag.hpp"
#include "tokenizer_description.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

const char* const run_flags_help =
    R"(  PREFIX, or --data-path [WEIGHT] PREFIX ...   or other flags of data, as prepare-cache has them
  --order megatron|instant|stored   of indices built in memory; without any; as stored, one dataset
  --part train|valid|test --split TEXT   of megatron (train; '969, 30, 1'); --valid-samples N, ...
  --data-cache-path FOLDER --tokenizer-description FILE.json   of megatron: takes those kept there
  --blend-rounding twice|fused   of megatron: fused is the blend that machines with FMA made (twice)
  --packing none|best_fit --pad-documents-to N   of instant: rows of whole documents (none; 1)
  --seq-length L --train-samples N|--train-iters N --seed N   samples or steps (one epoch); (1234)
  --ranks N --micro-batch-size B --global-batch-size G   (1, 1) samples of a step (N times B)
  --rampup-batch-size START INCREMENT SAMPLES   of single: steps that grow to G, as Megatron's
  --dataloader-type single|cyclic --no-data-sharding   cyclic: samples count on from pass to pass
  --full-validation            of part valid, or of other orders: each sample once, one at a time
  --no-drop-last --consumed-samples N   of single: serve a short end too; samples served before (0)
)";

namespace {

constexpr std::int64_t default_seed = 1234;
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

enum class order_kind { megatron, instant, stored };

dataset::data_blends data_of(const command_line& line, order_kind order, const std::string& help) {
  dataset::data_flags flags = data_flags_of(line);
  if (const auto words = line.find<std::vector<std::string>>("prefix")) {
    if (flags.data_path) throw misuse("PREFIX and --data-path exclude each other", help);
    if (words->size() > 1) {
      throw misuse("one PREFIX at a time, not also " + (*words)[1] + "; --data-path takes blends",
                   help);
    }
    flags.data_path = *words;
  } else if (!flags.data_path && !flags.data_args_path && !flags.train_data_path &&
             !flags.valid_data_path && !flags.test_data_path && !flags.per_split_data_args_path) {
    throw misuse("which data? PREFIX, or --data-path, is missing", help);
  }
  if (order != order_kind::megatron) flags.split = "1";  // --data-args-path requires a split
  return dataset::resolve_data_flags(flags);
}

std::optional<dataset::megatron_caches> caches_of(const command_line& line,
                                                  const std::string& help) {
  const auto folder = line.find<std::string>("data-cache-path");
  const auto description = line.find<std::string>("tokenizer-description");
  if (folder.has_value() != description.has_value()) {
    throw misuse("--data-cache-path and --tokenizer-description go together", help);
  }
  if (!folder) return std::nullopt;
  return dataset::megatron_caches{*folder, tokenizer_description(*description)};
}

}  // namespace

dataset::blend_rounding rounding_of(const command_line& line, const std::string& help) {
  const auto said = line.find<std::string>("blend-rounding").value_or("twice");
  for (const auto rounding : {dataset::blend_rounding::twice, dataset::blend_rounding::fused}) {
    if (said == name(rounding)) return rounding;
  }
  throw misuse("--blend-rounding '" + said + "', expected twice or fused", help);
}

namespace {

dataset::split_part part_of(const command_line& line, const std::string& help) {
  const auto said = line.find<std::string>("part").value_or("train");
  for (const dataset::split_part part : dataset::split_parts) {
    if (said == name(part)) return part;
  }
  throw misuse("--part '" + said + "', expected train, valid or test", help);
}

/// @param samples  samples of the part that the run serves; other parts do not affect the run
dataset::megatron_run megatron_of(const command_line& line, const dataset::data_blends& data,
                                  const dataset::gpt_request& request,
                                  std::optional<std::int64_t> samples, const std::string& help) {
  dataset::part_sizes sizes = {0, 0, 0};
  const auto part = static_cast<std::size_t>(request.part);
  sizes[part] = samples;
  const auto plan = dataset::plan_data(data, sizes)[part];
  return dataset::megatron_run::build(plan.value_or(dataset::part_plan{}), request,
                                      data.blend ? data.split : std::nullopt, 2,
                                      caches_of(line, help), rounding_of(line, help));
}

}  // namespace

void add_run_flags(po::options_description& own) {
  add_data_options(own);
  auto add = own.add_options();
  for (const char* flag : {"order", "part", "data-cache-path", "tokenizer-description",
                           "blend-rounding", "packing", "dataloader-type"})
    add(flag, po::value<std::string>());
  for (const char* flag : {"seq-length", "ranks", "micro-batch-size", "global-batch-size", "seed",
                           "pad-documents-to", "consumed-samples", "train-iters"}) {
    add(flag, po::value<std::int64_t>());
  }
  add("rampup-batch-size", po::value<std::vector<std::int64_t>>()->multitoken());
  for (const char* flag :
       {"no-data-sharding", "no-drop-last", "no-extra-token", "keep-partial-validation"}) {
    add(flag, po::bool_switch());
  }
}

std::optional<std::int64_t> count_of(const command_line& line, const char* flag, std::int64_t least,
                                     const std::string& help) {
  const auto value = line.find<std::int64_t>(flag);
  if (value && *value < least) {
    throw misuse(fmt::format("--{} is {}, expected {} or more", flag, *value, least), help);
  }
  return value;
}

namespace {

/// Returns true if `flag` was given with the word `second`. Returns false if it was given with the
/// word `first`, or not given.
bool is_second_word(const command_line& line, const char* flag, const char* first,
                    const char* second, const std::string& help) {
  const auto said = line.find<std::string>(flag).value_or(first);
  if (said == first || said == second) return said == second;
  throw misuse(fmt::format("--{} '{}', expected {} or {}", flag, said, first, second), help);
}

order_kind order_of(const command_line& line, const std::string& help) {
  const auto said = line.find<std::string>("order");
  if (!said) {
    throw misuse("which order? --order megatron, instant or stored is missing", help);
  }
  if (*said == "megatron") return order_kind::megatron;
  if (*said == "instant") return order_kind::instant;
  if (*said == "stored") return order_kind::stored;
  throw misuse(fmt::format("--order '{}', expected megatron, instant or stored", *said), help);
}

/// Rejects each given flag that does not apply to `order`, or that does not apply without packing.
void check_order(const command_line& line, order_kind order, bool packed, const std::string& help) {
  if (order == order_kind::megatron && packed) {
    throw misuse(
        "--packing best_fit is for --order instant: Megatron's samples are cut, not packed", help);
  }
  if (order == order_kind::stored && packed) {
    throw misuse("--packing best_fit is for --order instant: stored rows are cut, not packed",
                 help);
  }
  if (!packed && line.find<std::int64_t>("pad-documents-to")) {
    throw misuse("--pad-documents-to is for --packing best_fit; nothing else pads documents", help);
  }
  if (order == order_kind::megatron) return;
  if (order == order_kind::stored && line.find<std::int64_t>("seed")) {
    throw misuse("--seed is for the orders that shuffle; stored does not", help);
  }
  const std::string said = *line.find<std::string>("order");
  const auto refuse = [&](const char* flag, const char* why) {
    throw misuse(fmt::format("--{} is for --order megatron; {} {}", flag, said, why), help);
  };
  if (line.find<std::string>("split")) refuse("split", "serves whole datasets");
  if (line.find<std::string>("blend-rounding")) refuse("blend-rounding", "rounds nothing");
  if (caches_of(line, help)) refuse("data-cache-path", "has no indices");
  for (const char* flag : {"part", "per-split-data-args-path", "mid-level-dataset-surplus"}) {
    if (line.find<std::string>(flag)) refuse(flag, "has no parts");
  }
  for (const char* flag : {"train-data-path", "valid-data-path", "test-data-path"}) {
    if (line.find<std::vector<std::string>>(flag)) refuse(flag, "has no parts");
  }
  for (const char* flag : {"valid-samples", "test-samples"}) {
    if (line.find<std::int64_t>(flag)) refuse(flag, "has no parts");
  }
  for (const char* flag :
       {"multiple-validation-sets", "keep-partial-validation", "no-extra-token"}) {
    if (line.values[flag].as<bool>()) refuse(flag, "has none of these");
  }
}

std::optional<dataset::rampup_batch> rampup_of(const command_line& line, const std::string& help) {
  const auto given = line.find<std::vector<std::int64_t>>("rampup-batch-size");
  if (!given) return std::nullopt;
  if (given->size() == 3) return dataset::rampup_batch{(*given)[0], (*given)[1], (*given)[2]};
  throw misuse(fmt::format("--rampup-batch-size has {}, expected START INCREMENT SAMPLES",
                           counted(std::ssize(*given), "number")),
               help);
}

/// @throws config_error  as `check`
dataset::sampler_options sampler_options_of(const command_line& line, dataset::sampler_type type,
                                            const std::optional<dataset::rampup_batch>& rampup,
                                            const std::string& help) {
  dataset::sampler_options options;
  options.type = type;
  options.world_size = count_of(line, "ranks", 1, help).value_or(1);
  options.batch_size = count_of(line, "micro-batch-size", 1, help).value_or(1);
  // Full validation always uses batch size 1, regardless of the training's batch size.
  if (type == dataset::sampler_type::full_validation) options.batch_size = 1;
  if (options.batch_size > most / options.world_size) {
    throw misuse(fmt::format("--micro-batch-size is {}, too much for {} ranks", options.batch_size,
                             options.world_size),
                 help);
  }
  options.global_batch_size = count_of(line, "global-batch-size", 1, help).value_or(0);
  options.rampup = rampup;
  options.data_sharding = !line.values["no-data-sharding"].as<bool>();
  options.drop_last = !line.values["no-drop-last"].as<bool>();
  options.consumed_samples = count_of(line, "consumed-samples", 0, help).value_or(0);
  if (!options.drop_last && type != dataset::sampler_type::single) {
    throw misuse("--no-drop-last goes with --dataloader-type single only", help);
  }
  return dataset::check(options);
}

/// Returns the sampler that the flags select. With `--full-validation`, Megatron uses a separate
/// sampler for the valid part, and requests no particular number of samples for that part.
dataset::sampler_type sampler_of(const command_line& line, order_kind order,
                                 dataset::split_part part, const std::string& help) {
  const bool cyclic = is_second_word(line, "dataloader-type", "single", "cyclic", help);
  if (!cyclic && line.values["no-data-sharding"].as<bool>()) {
    throw misuse("--no-data-sharding is for --dataloader-type cyclic; single deals no shards",
                 help);
  }
  if (line.values["full-validation"].as<bool>() &&
      (order != order_kind::megatron || part == dataset::split_part::valid)) {
    return dataset::sampler_type::full_validation;
  }
  return cyclic ? dataset::sampler_type::cyclic : dataset::sampler_type::single;
}

/// Returns the number of samples that the flags request. For training, `--train-iters` counts steps
/// of one global batch each, as in Megatron.
std::optional<std::int64_t> asked_samples_of(const command_line& line, dataset::split_part part,
                                             const dataset::sampler_options& ranks,
                                             const std::string& help) {
  const auto iterations = count_of(line, "train-iters", 1, help);
  if (!iterations) return count_of(line, samples_flag(part), 1, help);
  if (line.find<std::int64_t>("train-samples")) {
    throw misuse("--train-iters and --train-samples exclude each other", help);
  }
  if (ranks.rampup) {
    throw misuse(
        "--train-iters does not go with --rampup-batch-size, as in Megatron; give "
        "--train-samples",
        help);
  }
  if (part != dataset::split_part::train) return count_of(line, samples_flag(part), 1, help);
  if (*iterations > most / ranks.samples_of_step()) {
    throw misuse(
        fmt::format("--train-iters is {}, expected at most {} for steps of {}", *iterations,
                    most / ranks.samples_of_step(), counted(ranks.samples_of_step(), "sample")),
        help);
  }
  return *iterations * ranks.samples_of_step();
}

}  // namespace

std::string assumptions_of(const command_line& line, const run_configuration& run, bool any_epoch) {
  std::string text;
  const auto add = [&](const std::string& what) { text += (text.empty() ? "" : ", ") + what; };
  const auto add_flag = [&](const char* flag, std::int64_t value) {
    if (!line.find<std::int64_t>(flag)) add(fmt::format("--{} {}", flag, value));
  };
  if (!run.has_end && !any_epoch) {
    add(fmt::format("one epoch of {} (see --{})", command::grouped(run.samples, "sample"),
                    samples_flag(part_of(line, {}))));
  }
  add_flag("ranks", 1);
  const bool all_once = run.sampler.type == dataset::sampler_type::full_validation;
  if (!all_once) add_flag("micro-batch-size", 1);
  add_flag("global-batch-size", run.sampler.samples_of_step());
  if (line.find<std::string>("order") != "stored") add_flag("seed", default_seed);
  return text;
}

run_configuration run_configuration_of(const command_line& line, const std::string& help) {
  const order_kind kind = order_of(line, help);
  const bool megatron = kind == order_kind::megatron;
  const bool packed = is_second_word(line, "packing", "none", "best_fit", help);
  const dataset::split_part part = part_of(line, help);
  const dataset::sampler_type sampler = sampler_of(line, kind, part, help);
  check_order(line, kind, packed, help);
  const auto seq_length = count_of(line, "seq-length", 1, help);
  if (!seq_length) throw misuse("--seq-length is missing", help);
  const std::int64_t seed = count_of(line, "seed", 0, help).value_or(default_seed);
  if (megatron && seed > std::numeric_limits<std::uint32_t>::max()) {
    throw misuse(fmt::format("--seed is {}, expected 0 to 4294967295", seed), help);
  }
  (void)part_sizes_of(line, help);  // also validates the unused flags of other parts
  const bool all_of_part = megatron && sampler == dataset::sampler_type::full_validation;
  const auto rampup = rampup_of(line, help);
  if (sampler != dataset::sampler_type::single && rampup) {
    throw misuse("--rampup-batch-size goes with --dataloader-type single only", help);
  }
  const dataset::sampler_options ranks = sampler_options_of(line, sampler, rampup, help);
  const auto asked = all_of_part ? std::nullopt : asked_samples_of(line, part, ranks, help);
  const std::optional<given_state> given = given_state_of(line);

  const dataset::data_blends data = data_of(line, kind, help);
  suggest_datasets(data);
  const auto configured = [&](auto order, std::int64_t samples) {
    const dataset::run_state described = order.description();
    run_configuration run{.order = std::make_shared<const decltype(order)>(std::move(order)),
                          .sampler = ranks,
                          .samples = samples,
                          .has_end = asked.has_value() || all_of_part || kind == order_kind::stored,
                          .has_state = given.has_value()};
    if (given) run.edits = edits_of(*given, described, run);
    return run;
  };
  if (megatron) {
    auto run = megatron_of(line, data,
                           {.sequence_length = *seq_length,
                            .part = part,
                            .random_seed = static_cast<std::uint32_t>(seed),
                            .add_extra_token = !line.values["no-extra-token"].as<bool>(),
                            .drop_last_partial_validation_sequence =
                                !line.values["keep-partial-validation"].as<bool>()},
                           asked, help);
    if (run.end() == 0) {
      throw config_error(fmt::format(
          "the {} part has no sample: a sample of --seq-length {} needs {}, and the part has "
          "fewer; "
          "give a smaller --seq-length or more data",
          name(part), *seq_length, counted(run.seq_len() + (run.extra_token() ? 1 : 0), "token")));
    }
    const std::int64_t samples = std::min(run.end(), asked.value_or(most));
    return configured(std::move(run), samples);
  }
  const dataset::blend_list& blend = *data.blend;
  if (kind == order_kind::stored) {
    if (blend.prefixes.size() > 1) {
      throw misuse("--order stored takes one dataset; instant and megatron take blends", help);
    }
    dataset::stored_run run(
        std::make_shared<const dataset::indexed_dataset>(blend.prefixes.front()), *seq_length);
    const std::int64_t samples = std::min(run.end(), asked.value_or(most));
    return configured(std::move(run), samples);
  }
  if (!asked && blend.prefixes.size() > 1) {
    throw misuse("--train-samples is missing: a blend has no one epoch", help);
  }
  if (!asked && sampler == dataset::sampler_type::cyclic) {
    throw misuse("--train-samples is missing: cyclic draws an order of all samples of the run",
                 help);
  }
  auto parts =
      instant_parts_of(blend, *seq_length, seed,
                       dataset::batch_steps(ranks.samples_of_step(), rampup), asked, given);
  if (packed) {
    const bool scheduled = given && !given->state.schedule.empty();
    auto run =
        packed_of(std::move(parts), !scheduled && !blend.weighted() && blend.prefixes.size() > 1,
                  count_of(line, "pad-documents-to", 1, help).value_or(1));
    const std::int64_t samples = asked.value_or(run.round_of(0, 0).last);
    return configured(std::move(run), samples);
  }
  dataset::instant_run run(parts.sources, parts.options);
  const std::int64_t samples = asked.value_or(run.round_of(0, 0).last);
  return configured(std::move(run), samples);
}

}  // namespace millrace::inspect
