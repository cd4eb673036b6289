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
#include <fmt/ranges.h>

#include <millrace/command/grouped.hpp>
#include <millrace/dataset/detail/megatron/blend_plan.hpp>
#include <millrace/dataset/detail/megatron/data_flags.hpp>
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/dataset/detail/packing/packing_algorithm.hpp>
#include <millrace/dataset/detail/run/batch_steps.hpp>
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/dataset/instant_run.hpp>
#include <millrace/dataset/megatron_run.hpp>
#include <millrace/dataset/packed_run.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>
#include <millrace/io/file_mapping.hpp>
#include <millrace/loader/detail/verify/source_identity.hpp>

#include "data_options.hpp"
#include "instant_parts.hpp"
#include "state_flag.hpp"
#include "tokenizer_description.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

const char* const run_flags_help =
    R"(  --order megatron|instant|stored   order of the samples
  --seq-length L            tokens per sample
  --data-path [WEIGHT] PREFIX ...   blend of datasets, instead of PREFIX
  --train-samples N, --train-iters N   samples or steps (default: one epoch)
  --seed N                  seed of the shuffle (default: 1234)
  --ranks N                 data-parallel ranks (default: 1)
  --micro-batch-size B      samples per rank and micro-batch (default: 1)
  --global-batch-size G     samples per step (default: ranks times B)
  (other run flags: inspect_dataset --help run)
)";

const char* const all_run_flags_help =
    R"(usage: inspect_dataset show|diff|where|audit|simulate PREFIX --order ORDER
           --seq-length L [RUN FLAGS] [FLAGS OF THE VERB]

Flags that describe a run: its data, the order of its samples, and its ranks.
Flags that Megatron has, too, mean here what they mean there.

Data:
  PREFIX                    one dataset, without .bin and .idx
  --data-path [WEIGHT] PREFIX ...   blend of datasets
  --data-args-path FILE     file with the words of --data-path
  --allow-several-tokenizers  accept datasets of different tokenizers

Run:
  --order megatron          Megatron's order; its indices are built in memory
  --order instant           shuffled order that needs no indices
  --order stored            order of the file; one dataset only
  --seq-length L            tokens per sample
  --train-samples N         samples of the run (default: one epoch)
  --train-iters N           steps of the run, instead of --train-samples
  --seed N                  seed of the shuffle (default: 1234)

Ranks:
  --ranks N                 data-parallel ranks (default: 1)
  --micro-batch-size B      samples per rank and micro-batch (default: 1)
  --global-batch-size G     samples per step (default: ranks times B)
  --consumed-samples N      samples served before the first step (default: 0)
  --dataloader-type single|cyclic   sampler (default: single)
  --rampup-batch-size START INCREMENT SAMPLES
                            single: grow steps from START to G samples
  --no-drop-last            single: also serve the last, incomplete step
  --no-data-sharding        cyclic: shuffle all samples, not each rank's share

Order megatron:
  --part train|valid|test   part to serve (default: train)
  --split TEXT              weights of the parts (default: '969, 30, 1')
  --train-data-path, --valid-data-path, --test-data-path [WEIGHT] PREFIX ...
                            data per part, instead of --data-path
  --per-split-data-args-path FILE   JSON file with the data per part
  --valid-samples, --test-samples N   samples of the part (default: one epoch)
  --full-validation         part valid: serve each sample once, one at a time
                            (orders instant and stored: the whole run)
  --multiple-validation-sets  as in Megatron
  --mid-level-dataset-surplus X   extra samples of a blend (default: 0.005)
  --data-cache-path FOLDER  use the index caches of prepare-cache in FOLDER
  --tokenizer-description FILE.json   required with --data-cache-path
  --blend-rounding twice|fused   rounding of blends (default: twice); fused: as
                            on machines with FMA
  --no-extra-token          no token after each sample's L for its last label
  --keep-partial-validation  keep the last, incomplete validation sample

Order instant:
  --packing none|best_fit|first_fit_decreasing|first_fit_shuffle|
            modified_first_fit_decreasing|one_per_row
                            rows of whole documents (default: none)
  --pad-documents-to N      with packing: pad each document to a multiple of N
  --leave-out-overlong      with packing: serve no documents that are longer
                            than a row (best_fit cuts them)
  --last-token-as-label     with packing, except best_fit: n tokens take n - 1
                            positions, as in Megatron-Bridge
)";

namespace {

constexpr std::int64_t default_seed = 1234;
constexpr const char* several_tokenizers_flag = "allow-several-tokenizers";
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

enum class order_kind { megatron, instant, stored };

dataset::data_blends data_of(const command_line& line, order_kind order, const std::string& help) {
  dataset::data_flags flags = data_flags_of(line);
  if (const auto words = line.find<std::vector<std::string>>("prefix")) {
    if (flags.data_path)
      throw misuse("PREFIX and --data-path exclude each other; pass one of them", help);
    if (words->size() > 1) {
      throw misuse(
          "expected one PREFIX, found a second: " + (*words)[1] + "; for a blend, pass --data-path",
          help);
    }
    flags.data_path = *words;
  } else if (!flags.data_path && !flags.data_args_path && !flags.train_data_path &&
             !flags.valid_data_path && !flags.test_data_path && !flags.per_split_data_args_path) {
    throw misuse("the data is required: PREFIX for one dataset, or --data-path for a blend", help);
  }
  if (order != order_kind::megatron) flags.split = "1";  // --data-args-path requires a split
  return dataset::resolve_data_flags(flags);
}

std::optional<dataset::megatron_caches> caches_of(const command_line& line,
                                                  const std::string& help) {
  const auto folder = line.find<std::string>("data-cache-path");
  const auto description = line.find<std::string>("tokenizer-description");
  if (folder.has_value() != description.has_value()) {
    throw misuse(folder ? "--data-cache-path requires --tokenizer-description"
                        : "--tokenizer-description requires --data-cache-path",
                 help);
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
  throw misuse("--blend-rounding '" + said + "': expected twice or fused", help);
}

namespace {

dataset::split_part part_of(const command_line& line, const std::string& help) {
  const auto said = line.find<std::string>("part").value_or("train");
  for (const dataset::split_part part : dataset::split_parts) {
    if (said == name(part)) return part;
  }
  throw misuse("--part '" + said + "': expected train, valid or test", help);
}

/// @param samples  number of samples for the part that the run serves; other parts do not matter
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
       {"no-data-sharding", "no-drop-last", "no-extra-token", "keep-partial-validation",
        "leave-out-overlong", "last-token-as-label", several_tokenizers_flag}) {
    add(flag, po::bool_switch());
  }
}

loader::loader_options loader_options_for(const run_configuration& run) {
  const dataset::sampler_options& ranks = run.sampler;
  loader::loader_options options;
  options.batch_size = ranks.batch_size;
  options.world_size = ranks.world_size;
  options.global_batch_size = ranks.global_batch_size;
  options.rampup = ranks.rampup;
  options.sampler = ranks.type;
  options.data_sharding = ranks.data_sharding;
  options.drop_last = ranks.drop_last;
  options.consumed_samples = ranks.consumed_samples;
  options.allow_several_tokenizers = true;  // run_configuration_of has checked the tokenizers
  return options;
}

std::string reader_name_of(const command_line& line, const std::string& help) {
  std::string name = line.find<std::string>("reader").value_or("auto");
  const char* const names[] = {"auto", "mmap", "pread", "io_uring"};
  if (std::ranges::find(names, name) == std::end(names)) {
    throw misuse("--reader '" + name + "': expected auto, mmap, pread or io_uring", help);
  }
  return name;
}

std::optional<std::int64_t> count_of(const command_line& line, const char* flag, std::int64_t least,
                                     const std::string& help) {
  const auto value = line.find<std::int64_t>(flag);
  if (value && *value < least) {
    throw misuse(fmt::format("--{} {}: expected {} or more", flag, *value, least), help);
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
  throw misuse(fmt::format("--{} '{}': expected {} or {}", flag, said, first, second), help);
}

order_kind order_of(const command_line& line, const std::string& help) {
  const auto said = line.find<std::string>("order");
  if (!said) throw misuse("--order is required: megatron, instant or stored", help);
  if (*said == "megatron") return order_kind::megatron;
  if (*said == "instant") return order_kind::instant;
  if (*said == "stored") return order_kind::stored;
  throw misuse(fmt::format("--order '{}': expected megatron, instant or stored", *said), help);
}

/// Returns nullopt without packing.
std::optional<dataset::packed_options> packing_of(const command_line& line,
                                                  const std::string& help) {
  const std::string said = line.find<std::string>("packing").value_or("none");
  const auto algorithm = dataset::packing_algorithm_of(said);
  if (!algorithm && said != "none") {
    const auto& names = dataset::packing_algorithm_names;
    throw misuse(fmt::format("--packing '{}': expected none, {} or {}", said,
                             fmt::join(names.begin(), names.end() - 1, ", "), names.back()),
                 help);
  }
  const auto multiple = count_of(line, "pad-documents-to", 1, help);
  if (!algorithm && multiple) throw misuse("--pad-documents-to requires --packing", help);
  const bool cuts = !algorithm || *algorithm == dataset::packing_algorithm::best_fit;
  if (cuts && line.values["leave-out-overlong"].as<bool>()) {
    throw misuse(
        "--leave-out-overlong requires --packing with an algorithm that does not cut "
        "documents: best_fit does",
        help);
  }
  if (cuts && line.values["last-token-as-label"].as<bool>()) {
    throw misuse(
        "--last-token-as-label requires --packing with an algorithm that does not cut "
        "documents: best_fit does",
        help);
  }
  if (!algorithm) return std::nullopt;
  return dataset::packed_options{
      .pad_documents_to = multiple.value_or(1),
      .keep_tables = false,
      .algorithm = *algorithm,
      .leave_out_overlong = line.values["leave-out-overlong"].as<bool>(),
      .last_token_as_label = line.values["last-token-as-label"].as<bool>()};
}

/// Rejects each given flag that does not apply to `order`.
void check_order(const command_line& line, order_kind order, bool packed, const std::string& help) {
  if (order == order_kind::megatron && packed) {
    throw misuse("--packing requires --order instant; Megatron cuts samples, it does not pack them",
                 help);
  }
  if (order == order_kind::stored && packed) {
    throw misuse(
        "--packing requires --order instant; order stored cuts rows, it does not pack them", help);
  }
  if (order == order_kind::megatron) return;
  if (order == order_kind::stored && line.find<std::int64_t>("seed")) {
    throw misuse("--seed requires --order megatron or instant; order stored does not shuffle",
                 help);
  }
  const std::string said = *line.find<std::string>("order");
  const auto refuse = [&](const char* flag, const char* why) {
    throw misuse(fmt::format("--{} requires --order megatron; order {} {}", flag, said, why), help);
  };
  if (line.find<std::string>("split")) refuse("split", "serves whole datasets");
  if (line.find<std::string>("blend-rounding")) refuse("blend-rounding", "does no rounding");
  if (caches_of(line, help)) refuse("data-cache-path", "uses no indices");
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
    if (line.values[flag].as<bool>()) refuse(flag, "has no such option");
  }
}

std::optional<dataset::rampup_batch> rampup_of(const command_line& line, const std::string& help) {
  const auto given = line.find<std::vector<std::int64_t>>("rampup-batch-size");
  if (!given) return std::nullopt;
  if (given->size() == 3) return dataset::rampup_batch{(*given)[0], (*given)[1], (*given)[2]};
  throw misuse(fmt::format("--rampup-batch-size has {}, expected three: START INCREMENT SAMPLES",
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
    throw misuse(
        fmt::format("--micro-batch-size {}: expected at most {} for {}", options.batch_size,
                    most / options.world_size, counted(options.world_size, "rank")),
        help);
  }
  options.global_batch_size = count_of(line, "global-batch-size", 1, help).value_or(0);
  options.rampup = rampup;
  options.data_sharding = !line.values["no-data-sharding"].as<bool>();
  options.drop_last = !line.values["no-drop-last"].as<bool>();
  options.consumed_samples = count_of(line, "consumed-samples", 0, help).value_or(0);
  if (!options.drop_last && type != dataset::sampler_type::single) {
    throw misuse("--no-drop-last requires --dataloader-type single", help);
  }
  return dataset::check(options);
}

/// Returns the sampler that the flags select. With `--full-validation`, Megatron uses a separate
/// sampler for the valid part, and requests no particular number of samples for that part.
dataset::sampler_type sampler_of(const command_line& line, order_kind order,
                                 dataset::split_part part, const std::string& help) {
  const bool cyclic = is_second_word(line, "dataloader-type", "single", "cyclic", help);
  if (!cyclic && line.values["no-data-sharding"].as<bool>()) {
    throw misuse(
        "--no-data-sharding requires --dataloader-type cyclic; the single sampler has no shards",
        help);
  }
  if (line.values["full-validation"].as<bool>() &&
      (order != order_kind::megatron || part == dataset::split_part::valid)) {
    return dataset::sampler_type::full_validation;
  }
  return cyclic ? dataset::sampler_type::cyclic : dataset::sampler_type::single;
}

/// Refuses datasets that were made with different tokenizers, as the loader does.
/// @throws config_error, format_error, io_error  as loader::identify_sources
void expect_one_tokenizer(const command_line& line, dataset::run_state run) {
  (void)loader::identify_sources(run, line.values[several_tokenizers_flag].as<bool>(),
                                 std::string("pass --") + several_tokenizers_flag);
}

/// The number of samples that the flags request. For training, `--train-iters` counts steps of one
/// global batch each, as in Megatron.
std::optional<std::int64_t> asked_samples_of(const command_line& line, dataset::split_part part,
                                             const dataset::sampler_options& ranks,
                                             const std::string& help) {
  const auto iterations = count_of(line, "train-iters", 1, help);
  if (!iterations) return count_of(line, samples_flag(part), 1, help);
  if (line.find<std::int64_t>("train-samples")) {
    throw misuse("--train-iters and --train-samples exclude each other; pass one of them", help);
  }
  if (ranks.rampup) {
    throw misuse(
        "--train-iters and --rampup-batch-size exclude each other, as in Megatron; pass "
        "--train-samples instead of --train-iters",
        help);
  }
  if (part != dataset::split_part::train) return count_of(line, samples_flag(part), 1, help);
  if (*iterations > most / ranks.samples_of_step()) {
    throw misuse(
        fmt::format("--train-iters {}: expected at most {} for steps of {}", *iterations,
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
  const auto order = line.find<std::string>("order");
  if (order == "megatron") {
    if (!line.find<std::string>("part")) add("--part train");
    const bool one_blend = line.find<std::vector<std::string>>("prefix") ||
                           line.find<std::vector<std::string>>("data-path");
    if (one_blend && !line.find<std::string>("split")) {
      add(fmt::format("--split '{}'", dataset::split_matrix::default_text));
    }
  }
  if (!run.has_end && !any_epoch) {
    add(fmt::format("one epoch of {} (see --{})", command::grouped(run.samples, "sample"),
                    samples_flag(part_of(line, {}))));
  }
  add_flag("ranks", 1);
  const bool all_once = run.sampler.type == dataset::sampler_type::full_validation;
  if (!all_once) add_flag("micro-batch-size", 1);
  add_flag("global-batch-size", run.sampler.samples_of_step());
  if (order != "stored") add_flag("seed", default_seed);
  return text;
}

run_configuration run_configuration_of(const command_line& line, const std::string& help) {
  const order_kind kind = order_of(line, help);
  const bool megatron = kind == order_kind::megatron;
  auto packing = packing_of(line, help);
  const dataset::split_part part = part_of(line, help);
  const dataset::sampler_type sampler = sampler_of(line, kind, part, help);
  check_order(line, kind, packing.has_value(), help);
  const auto seq_length = count_of(line, "seq-length", 1, help);
  if (!seq_length) throw misuse("--seq-length is required: the tokens per sample", help);
  const std::int64_t seed = count_of(line, "seed", 0, help).value_or(default_seed);
  if (megatron && seed > std::numeric_limits<std::uint32_t>::max()) {
    throw misuse(fmt::format("--seed {}: expected 0 to 4294967295", seed), help);
  }
  (void)part_sizes_of(line, help);  // also validates the unused flags of other parts
  const bool all_of_part = megatron && sampler == dataset::sampler_type::full_validation;
  const auto rampup = rampup_of(line, help);
  if (sampler != dataset::sampler_type::single && rampup) {
    throw misuse("--rampup-batch-size requires --dataloader-type single", help);
  }
  const dataset::sampler_options ranks = sampler_options_of(line, sampler, rampup, help);
  const auto asked = all_of_part ? std::nullopt : asked_samples_of(line, part, ranks, help);
  const std::optional<given_state> given = given_state_of(line);

  const dataset::data_blends data = data_of(line, kind, help);
  suggest_datasets(data);
  const auto configured = [&](auto order, std::int64_t samples) {
    const dataset::run_state described = order.description();
    expect_one_tokenizer(line, described);
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
          "fewer; pass a smaller --seq-length or more data",
          name(part), *seq_length, counted(run.seq_len() + (run.extra_token() ? 1 : 0), "token")));
    }
    const std::int64_t samples = std::min(run.end(), asked.value_or(most));
    return configured(std::move(run), samples);
  }
  const dataset::blend_list& blend = *data.blend;
  if (kind == order_kind::stored) {
    if (blend.prefixes.size() > 1) {
      throw misuse(
          "--order stored takes one dataset; for a blend, pass --order megatron or instant", help);
    }
    dataset::stored_run run(
        std::make_shared<const dataset::indexed_dataset>(blend.prefixes.front()), *seq_length);
    const std::int64_t samples = std::min(run.end(), asked.value_or(most));
    return configured(std::move(run), samples);
  }
  if (!asked && blend.prefixes.size() > 1) {
    throw misuse(
        "--train-samples or --train-iters is required: a blend has no single epoch as its default",
        help);
  }
  if (!asked && sampler == dataset::sampler_type::cyclic) {
    throw misuse(
        "--train-samples or --train-iters is required: the cyclic sampler shuffles all samples of "
        "the run",
        help);
  }
  const auto parts =
      instant_parts_of(blend, *seq_length, seed,
                       dataset::batch_steps(ranks.samples_of_step(), rampup), asked, given);
  if (packing) {
    const bool scheduled = given && !given->state.schedule.empty();
    packing->weigh_by_rows = !scheduled && !blend.weighted();
    dataset::packed_run run(parts.sources, parts.options, *packing);
    const std::int64_t samples = asked.value_or(run.round_of(0, 0).last);
    return configured(std::move(run), samples);
  }
  dataset::instant_run run(parts.sources, parts.options);
  const std::int64_t samples = asked.value_or(run.round_of(0, 0).last);
  return configured(std::move(run), samples);
}

}  // namespace millrace::inspect
