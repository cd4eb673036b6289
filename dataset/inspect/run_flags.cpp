// SPDX-License-Identifier: Apache-2.0
#include "run_flags.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/dataset/instant/index_columns.hpp>
#include <millrace/dataset/megatron/blend_plan.hpp>
#include <millrace/dataset/megatron/data_flags.hpp>
#include <millrace/dataset/run/state.hpp>
#include <millrace/dataset/run/state_compare.hpp>
#include <millrace/error.hpp>
#include <millrace/io/file_mapping.hpp>

#include "tokenizer_description.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

const char* const run_flags_help =
    R"(  PREFIX, or --data-path [WEIGHT] PREFIX ...   one dataset, or a blend; of megatron its train part
  --order megatron|instant     megatron builds its indices in memory; instant needs none
  --data-cache-path FOLDER --tokenizer-description FILE.json   of megatron: takes those kept there
  --blend-rounding twice|fused   of megatron: fused is the blend that machines with FMA made (twice)
  --split TEXT --seed N        of megatron ('969, 30, 1'); 1234 without it
  --packing none|best_fit --pad-documents-to N   of instant: rows of whole documents (none; 1)
  --seq-length L --train-samples N   tokens of a sample; samples of the run (one epoch)
  --ranks N --micro-batch-size B   data-parallel ranks (1); samples of a rank in a micro-batch (1)
  --global-batch-size G        samples of a step: a multiple of B times ranks (that)
  --rampup-batch-size START INCREMENT SAMPLES   of single: steps that grow to G, as Megatron's
  --dataloader-type single|cyclic --no-data-sharding   cyclic: samples count on from pass to pass
)";

const char* const state_flag_help =
    R"(  --state FILE                 a state of the run, as JSON, whose edits are followed
)";

namespace {

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

dataset::data_blends data_of(const command_line& line, const std::string& help) {
  auto words = line.find<std::vector<std::string>>("prefix");
  const auto blend = line.find<std::vector<std::string>>("data-path");
  if (words && blend) throw misuse("PREFIX and --data-path exclude each other", help);
  if (!words && !blend) throw misuse("which data? PREFIX, or --data-path, is missing", help);
  if (words && words->size() > 1) {
    throw misuse("one PREFIX at a time, not also " + (*words)[1] + "; --data-path takes blends",
                 help);
  }
  dataset::data_flags flags;
  (void)dataset::set_data_flag(flags, "--data-path", blend ? *blend : *words);
  if (const auto split = line.find<std::string>("split")) {
    (void)dataset::set_data_flag(flags, "--split", std::vector<std::string>{*split});
  }
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

dataset::megatron_run megatron_of(const dataset::data_blends& data, std::int64_t seq_length,
                                  std::int64_t seed, std::optional<std::int64_t> train_samples,
                                  const std::optional<dataset::megatron_caches>& caches,
                                  dataset::blend_rounding rounding) {
  const auto plan = dataset::plan_data(data, {train_samples, 0, 0});
  return dataset::megatron_run::build(*plan[0],
                                      {.sequence_length = seq_length,
                                       .part = dataset::split_part::train,
                                       .random_seed = static_cast<std::uint32_t>(seed)},
                                      data.split, 2, caches, rounding);
}

/// What the orders instant and packed are made of. Without weights, sources count by their windows,
/// so that all end their epochs together.
struct instant_parts {
  std::vector<dataset::instant_source> sources;
  dataset::instant_options options;
};

instant_parts instant_parts_of(const dataset::blend_list& data, std::int64_t seq_length,
                               std::int64_t seed, const dataset::batch_steps& steps,
                               std::optional<std::int64_t> train_samples) {
  instant_parts parts;
  parts.options.seed = static_cast<std::uint64_t>(seed);
  parts.options.seq_len = seq_length;
  parts.options.first_position_of = [=](std::int64_t step) { return steps.first_position(step); };
  parts.options.train_samples = train_samples;
  parts.options.segments.push_back({0, {}});
  for (std::size_t i = 0; i < data.prefixes.size(); ++i) {
    const dataset::index_columns columns(data.prefixes[i], dataset::index_access::pread);
    parts.sources.push_back({data.prefixes[i], "", {}, columns.token_count()});
    const double weight = data.weighted() ? data.weights[i]
                                          : static_cast<double>(std::max<std::int64_t>(
                                                1, (columns.token_count() - 1) / seq_length));
    parts.options.segments[0].sources.push_back({static_cast<std::int64_t>(i), weight});
  }
  return parts;
}

/// Without weights, sources count by their rows. Nothing is written beside the datasets.
dataset::packed_run packed_of(instant_parts parts, bool weighted, std::int64_t pad_documents_to) {
  const dataset::packed_options packing{.pad_documents_to = pad_documents_to, .keep_tables = false};
  dataset::packed_run run(parts.sources, parts.options, packing);
  if (weighted || parts.sources.size() == 1) return run;
  for (dataset::weighted_source& each : parts.options.segments[0].sources) {
    each.weight = static_cast<double>(run.info(each.source).rows);
  }
  return {parts.sources, parts.options, packing};
}

/// The edits of a state that is of the run that the flags say: where they differ it is refused.
/// Whether files are still the same ones is not looked at. A state without "data" is one that
/// somebody has written to try edits, and is held to what it says of the order alone.
std::vector<dataset::edit> edits_of(const command_line& line, dataset::run_state run,
                                    const run_configuration& of) {
  if (!line.values.count("state")) return {};
  if (of.rampup) {
    run.rampup_batch = {of.rampup->start, of.rampup->increment, of.rampup->samples};
  }
  if (of.cyclic) {
    run.sampler = "cyclic";
    run.micro_batch = of.ranks.micro_batch_size();
    run.ranks = of.ranks.ranks();
    run.sampled = std::visit([](const auto& order) { return order.end(); }, of.order);
    run.data_sharding = of.data_sharding;
  }
  const std::string path = *line.find<std::string>("state");
  const io::file_mapping file(path);
  const auto bytes = file.bytes();
  dataset::run_state state;
  try {
    state = dataset::parse_state({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    if (!state.schedule.empty()) {
      throw config_error("the run has a schedule of " + std::to_string(state.schedule.size()) +
                         " segments; this answers for one blend all along");
    }
    if (state.data.empty()) {
      dataset::run_state same = state;
      same.order = run.order;
      same.seed = run.seed;
      if (state.seq_len != 0) same.seq_len = run.seq_len;
      same.packing = run.packing;
      same.sampler = run.sampler;
      if (!state.rampup_batch.empty()) same.rampup_batch = run.rampup_batch;
      run = same;
    }
    run.global_batch = state.global_batch == 0 ? 0 : of.ranks.global_batch_size();
    run.edits = state.edits;
    run.tokenizer = state.tokenizer;
    for (std::size_t i = 0; i < std::min(run.data.size(), state.data.size()); ++i) {
      const dataset::state_source now = run.data[i];
      run.data[i] = state.data[i];
      run.data[i].prefix = now.prefix;
      run.data[i].name = now.name;
      // One dataset alone is served whatever its weight is.
      if (run.data.size() > 1) run.data[i].weight = now.weight;
    }
    dataset::require_same(state, run);
    if (of.cyclic && !state.edits.empty()) {
      throw config_error("it has " + counted(std::ssize(state.edits), "edit") +
                         ", expected none: only the sampler single serves positions one "
                         "after another, so that they can be skipped or replayed");
    }
  } catch (const format_error& e) {
    throw e.in(path);
  } catch (const config_error& e) {
    throw config_error(path + ": " + e.what());
  }
  return state.edits;
}

}  // namespace

void add_run_flags(po::options_description& own) {
  auto add = own.add_options();
  add("data-path", po::value<std::vector<std::string>>()->multitoken());
  for (const char* flag : {"order", "split", "data-cache-path", "tokenizer-description",
                           "blend-rounding", "packing", "dataloader-type"})
    add(flag, po::value<std::string>());
  for (const char* flag : {"seq-length", "train-samples", "ranks", "micro-batch-size",
                           "global-batch-size", "seed", "pad-documents-to"}) {
    add(flag, po::value<std::int64_t>());
  }
  add("rampup-batch-size", po::value<std::vector<std::int64_t>>()->multitoken());
  add("no-data-sharding", po::bool_switch());
}

void add_state_flag(po::options_description& own) {
  own.add_options()("state", po::value<std::string>());
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

/// The value of a flag that takes one of two words; false: the first, or none.
bool is_second_word(const command_line& line, const char* flag, const char* first,
                    const char* second, const std::string& help) {
  const auto said = line.find<std::string>(flag).value_or(first);
  if (said == first || said == second) return said == second;
  throw misuse(fmt::format("--{} '{}', expected {} or {}", flag, said, first, second), help);
}

/// Refuses flags that are another order's.
void check_order(const command_line& line, bool instant, bool packed, const std::string& help) {
  if (!instant && packed) {
    throw misuse(
        "--packing best_fit is for --order instant: Megatron's samples are cut, not packed", help);
  }
  if (!packed && line.find<std::int64_t>("pad-documents-to")) {
    throw misuse("--pad-documents-to is for --packing best_fit; nothing else pads documents", help);
  }
  if (!instant) return;
  if (line.find<std::string>("split")) {
    throw misuse("--split is for --order megatron; instant serves whole datasets", help);
  }
  if (line.find<std::string>("blend-rounding")) {
    throw misuse("--blend-rounding is for --order megatron; instant rounds nothing", help);
  }
  if (caches_of(line, help)) {
    throw misuse("--data-cache-path is for --order megatron; instant has no indices", help);
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

dataset::topology ranks_of(const command_line& line,
                           const std::optional<dataset::rampup_batch>& rampup,
                           const std::string& help) {
  const std::int64_t ranks = count_of(line, "ranks", 1, help).value_or(1);
  const std::int64_t micro_batch = count_of(line, "micro-batch-size", 1, help).value_or(1);
  if (micro_batch > most / ranks) {
    throw misuse(fmt::format("--micro-batch-size is {}, too much for {} ranks", micro_batch, ranks),
                 help);
  }
  return {ranks, micro_batch,
          count_of(line, "global-batch-size", 1, help).value_or(micro_batch * ranks), rampup};
}

}  // namespace

run_configuration run_configuration_of(const command_line& line, const std::string& help) {
  if (!line.find<std::string>("order")) {
    throw misuse("which order? --order megatron or --order instant is missing", help);
  }
  const bool instant = is_second_word(line, "order", "megatron", "instant", help);
  const bool packed = is_second_word(line, "packing", "none", "best_fit", help);
  const bool cyclic = is_second_word(line, "dataloader-type", "single", "cyclic", help);
  check_order(line, instant, packed, help);
  const auto seq_length = count_of(line, "seq-length", 1, help);
  if (!seq_length) throw misuse("--seq-length is missing", help);
  const std::int64_t seed = count_of(line, "seed", 0, help).value_or(1234);
  if (!instant && seed > std::numeric_limits<std::uint32_t>::max()) {
    throw misuse(fmt::format("--seed is {}, expected 0 to 4294967295", seed), help);
  }
  const auto train_samples = count_of(line, "train-samples", 1, help);
  const auto rampup = rampup_of(line, help);
  if (cyclic && rampup) {
    throw misuse("--rampup-batch-size goes with --dataloader-type single only", help);
  }
  const bool data_sharding = !line.values["no-data-sharding"].as<bool>();
  if (!cyclic && !data_sharding) {
    throw misuse("--no-data-sharding is for --dataloader-type cyclic; single deals no shards",
                 help);
  }
  const dataset::topology ranks = ranks_of(line, rampup, help);

  const dataset::data_blends data = data_of(line, help);
  const auto configured = [&](auto order, std::int64_t samples) {
    const dataset::run_state described = order.description();
    run_configuration run{.order = std::move(order),
                          .ranks = ranks,
                          .rampup = rampup,
                          .cyclic = cyclic,
                          .data_sharding = data_sharding,
                          .samples = samples,
                          .has_end = train_samples.has_value(),
                          .has_state = line.values.count("state") != 0};
    run.edits = edits_of(line, described, run);
    return run;
  };
  if (!instant) {
    auto run = megatron_of(data, *seq_length, seed, train_samples, caches_of(line, help),
                           rounding_of(line, help));
    const std::int64_t samples = std::min(run.end(), train_samples.value_or(most));
    return configured(std::move(run), samples);
  }
  if (!train_samples && data.blend->prefixes.size() > 1) {
    throw misuse("--train-samples is missing: a blend has no one epoch", help);
  }
  if (!train_samples && cyclic) {
    throw misuse("--train-samples is missing: cyclic draws an order of all samples of the run",
                 help);
  }
  auto parts = instant_parts_of(*data.blend, *seq_length, seed, ranks.steps(), train_samples);
  if (packed) {
    auto run = packed_of(std::move(parts), data.blend->weighted(),
                         count_of(line, "pad-documents-to", 1, help).value_or(1));
    const std::int64_t samples = train_samples.value_or(run.info(0).rows);
    return configured(std::move(run), samples);
  }
  dataset::instant_run run(parts.sources, parts.options);
  const std::int64_t samples = train_samples.value_or(run.order().windows(0).windows_per_epoch());
  return configured(std::move(run), samples);
}

}  // namespace millrace::inspect
