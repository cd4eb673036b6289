// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <millrace/command/text.hpp>
#include <millrace/dataset/diff.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/dataset/where.hpp>
#include <millrace/formats/detail/json_writer.hpp>

#include "command_line.hpp"
#include "diff.hpp"
#include "inspect.hpp"
#include "progress_line.hpp"
#include "run_flags.hpp"
#include "served_run.hpp"
#include "state_flag.hpp"

namespace millrace::inspect {

namespace po = boost::program_options;

namespace {

/// A run as `--help run` describes it, ready to be compared.
struct configured_run {
  explicit configured_run(const command_line& line)
      : run(run_configuration_of(line, diff_help)), served(served_run_of(run, diff_help)) {
    const dataset::sampler_options& options = served.ranks.options();
    if (options.type == dataset::sampler_type::full_validation || !options.drop_last) return;
    // Training ends after the last complete step.
    const std::int64_t end = served.ranks.end_of_whole_steps(served.end);
    const std::int64_t last = served.ranks.first_sample_of(end);
    if (last > served.ranks.first_sample()) served.end = std::min(served.end, last);
  }

  dataset::diffed_run compared() const { return {*run.order, served.ranks, served.end}; }
  const std::string& prefix(std::int64_t source) const {
    return run.order->prefix(source).native();
  }

  run_configuration run;
  served_run served;
};

/// Of each list, a run has at most one flag.
constexpr std::array<std::array<std::string_view, 7>, 2> alternatives = {
    {{"prefix", "data-path", "data-args-path", "train-data-path", "valid-data-path",
      "test-data-path", "per-split-data-args-path"},
     {"train-samples", "train-iters"}}};

/// The arguments `before`, with the flags in `changes` in place of those that they replace.
/// @pre both are valid arguments
arguments changed(const arguments& before, const arguments& changes) {
  po::options_description flags;
  add_diff_flags(flags);
  auto add = flags.add_options();
  add("json", po::bool_switch());
  add("help,h", po::bool_switch());
  add("prefix", po::value<std::vector<std::string>>());
  po::positional_options_description positions;
  positions.add("prefix", -1);
  const auto parsed = [&](const arguments& args) {
    return po::command_line_parser(args)
        .options(flags)
        .positional(positions)
        .style(po::command_line_style::unix_style & ~po::command_line_style::allow_guessing)
        .run()
        .options;
  };
  std::set<std::string> replaced;
  for (const auto& option : parsed(changes)) {
    replaced.insert(option.string_key);
    for (const auto& group : alternatives) {
      if (std::ranges::find(group, option.string_key) != group.end()) {
        replaced.insert(group.begin(), group.end());
      }
    }
  }
  arguments all;
  for (const auto& option : parsed(before)) {
    if (replaced.contains(option.string_key)) continue;
    all.insert(all.end(), option.original_tokens.begin(), option.original_tokens.end());
  }
  all.insert(all.end(), changes.begin(), changes.end());
  return all;
}

/// The first sample that differs, as a run serves it.
dataset::served_sample sample_of(const configured_run& side, const dataset::run_places& places,
                                 std::int64_t sample) {
  return places.at(side.served.ranks.slot_of(sample));
}

std::string sample_text(char which, const configured_run& side, std::int64_t sample) {
  const dataset::run_places places(*side.run.order, side.served.ranks);
  const dataset::served_sample served = sample_of(side, places, sample);
  std::string text =
      fmt::format("  {}: {}", which,
                  served_line(side.prefix(served.sample.source), served, side.run.has_state));
  constexpr std::size_t most_pieces = 3;
  for (std::size_t i = 0; i < std::min(most_pieces, served.pieces.size()); ++i) {
    text += "     " + piece_line(places, served.sample.source, served.pieces[i]);
  }
  if (served.pieces.size() > most_pieces) {
    const auto more = static_cast<std::int64_t>(served.pieces.size() - most_pieces);
    text += fmt::format("     and {} more; --json prints all\n", grouped(more, "document"));
  }
  return text;
}

std::string ranks_text(const std::vector<std::int64_t>& ranks, std::int64_t all) {
  if (std::ssize(ranks) == all) return all == 1 ? "its rank" : "all " + grouped(all, "rank");
  std::vector<dataset::position_range> ranges;
  for (const std::int64_t rank : ranks) {
    if (!ranges.empty() && ranges.back().last == rank) {
      ++ranges.back().last;
    } else {
      ranges.push_back({rank, rank + 1});
    }
  }
  constexpr std::size_t most = 8;
  const auto count = std::ssize(ranges);
  ranges.resize(std::min(most, ranges.size()));
  return (ranks.size() == 1 ? "rank " : "ranks ") + ranges_text(ranges, count);
}

std::string runs_text(const configured_run& a, const configured_run& b,
                      const dataset::run_difference& found) {
  std::string text;
  const auto out = std::back_inserter(text);
  const auto samples =
      fmt::format("samples {} to {}", grouped(found.first), grouped(found.end - 1));
  if (found.samples == 0) {
    fmt::format_to(out, "{}: all equal\n", samples);
  } else {
    fmt::format_to(out, "{}: {} of {} differ: {}\n", samples, grouped(found.samples),
                   grouped(found.end - found.first),
                   ranges_text(found.first_ranges, found.sample_ranges));
  }
  const auto steps =
      fmt::format("steps {} to {}", grouped(found.first_step), grouped(found.end_step - 1));
  if (found.steps == 0) {
    fmt::format_to(out, "{}: no step differs\n", steps);
  } else {
    fmt::format_to(out, "{}: {} of {} differ: {}\n", steps, grouped(found.steps),
                   grouped(found.end_step - found.first_step),
                   ranges_text(found.first_step_ranges, found.step_ranges));
    if (found.samples == 0) {
      text += "  the samples are the same, but steps begin at other samples\n";
    }
  }
  if (found.reordered > 0) {
    fmt::format_to(out, "  {} of these consist of the same samples in another order\n",
                   grouped(found.reordered));
  }
  for (const auto& [more, which] :
       {std::pair(found.only_in_a, 'A'), std::pair(found.only_in_b, 'B')}) {
    if (more > 0) fmt::format_to(out, "then {} serves {}\n", which, grouped(more, "more sample"));
  }
  const std::int64_t ranks_a = a.served.ranks.options().world_size;
  const std::int64_t ranks_b = b.served.ranks.options().world_size;
  if (found.samples > 0) {
    fmt::format_to(out, "other samples are served by {} in A, {} in B\n",
                   ranks_text(found.ranks_in_a, ranks_a), ranks_text(found.ranks_in_b, ranks_b));
  }
  if (found.served_by_other_rank > 0) {
    fmt::format_to(out, "{} equal samples are served by another rank\n",
                   grouped(found.served_by_other_rank));
  }
  if (found.samples > 0) {
    const std::int64_t sample = found.first_ranges.empty() ? -1 : found.first_ranges.front().first;
    if (sample >= 0) {
      fmt::format_to(out, "first difference: sample {}\n", grouped(sample));
      text += sample_text('A', a, sample) + sample_text('B', b, sample);
    }
  }
  return text;
}

void write_ranges(formats::json_writer& json, const char* key,
                  const std::vector<dataset::position_range>& ranges) {
  json.key(key).open('[');
  for (const auto& [first, last] : ranges) {
    json.open('{').key("first").value(first).key("end").value(last).close('}');
  }
  json.close(']');
}

void write_sample(formats::json_writer& json, const configured_run& side, std::int64_t sample) {
  const dataset::run_places places(*side.run.order, side.served.ranks);
  const dataset::served_sample served = sample_of(side, places, sample);
  json.open('{');
  write_served(json, places, side.prefix(served.sample.source), served, side.run.has_state);
  json.close('}');
}

/// Writes the members about the runs.
void write_runs(formats::json_writer& json, const configured_run& a, const configured_run& b,
                const dataset::run_difference& found) {
  json.key("first_sample").value(found.first).key("end_sample").value(found.end);
  json.key("only_in_a").value(found.only_in_a).key("only_in_b").value(found.only_in_b);
  json.key("samples").value(found.samples).key("sample_ranges").value(found.sample_ranges);
  write_ranges(json, "first_sample_ranges", found.first_ranges);
  json.key("first_step").value(found.first_step).key("end_step").value(found.end_step);
  json.key("steps").value(found.steps).key("reordered_steps").value(found.reordered);
  json.key("step_ranges").value(found.step_ranges);
  write_ranges(json, "first_step_ranges", found.first_step_ranges);
  json.key("served_by_other_rank").value(found.served_by_other_rank);
  for (const auto& [key, ranks] :
       {std::pair("ranks_in_a", &found.ranks_in_a), std::pair("ranks_in_b", &found.ranks_in_b)}) {
    json.key(key).open('[');
    for (const std::int64_t rank : *ranks) json.value(rank);
    json.close(']');
  }
  json.key("first");
  if (found.first_ranges.empty()) {
    json.null();
    return;
  }
  json.open('{').key("a");
  write_sample(json, a, found.first_ranges.front().first);
  json.key("b");
  write_sample(json, b, found.first_ranges.front().first);
  json.close('}');
}

dataset::run_difference compared(const configured_run& a, const configured_run& b,
                                 dataset::diff_options options) {
  progress_line progress("compared", "sample", std::min(a.served.end, b.served.end));
  options.progress = [&](std::int64_t samples) { progress.show(samples); };
  return dataset::diff_runs(a.compared(), b.compared(), options);
}

/// The flags of the run that a state belongs to.
/// @param samples  to serve, if the state does not say it
arguments flags_of(const std::string& path, const dataset::run_state& state, std::int64_t samples) {
  arguments all = {"--order", state.order, "--seq-length", std::to_string(state.seq_len)};
  const auto add = [&](const std::string& flag, const std::string& value) {
    all.push_back("--" + flag);
    all.push_back(value);
  };
  const bool megatron = state.order == "megatron";
  const bool weights = state.weighted && (megatron || state.data.size() > 1);
  all.push_back(megatron && state.split.empty() ? "--" + state.split_part + "-data-path"
                                                : "--data-path");
  for (const dataset::state_source& each : state.data) {
    if (weights) all.push_back(fmt::format("{}", each.weight));
    all.push_back(each.prefix);
  }
  if (state.order != "stored") add("seed", std::to_string(state.seed));
  if (megatron) {
    if (!state.split.empty()) add("split", state.split);
    add("part", state.split_part);
    constexpr const char* parts[] = {"train", "valid", "test"};
    for (std::size_t p = 0; p < std::min(std::size(parts), state.samples.size()); ++p) {
      if (state.samples[p] > 0) {
        add(std::string(parts[p]) + "-samples", std::to_string(state.samples[p]));
      }
    }
    add("mid-level-dataset-surplus", fmt::format("{}", state.surplus));
    add("blend-rounding", state.blend_rounding);
    if (!state.extra_token) all.emplace_back("--no-extra-token");
    if (!state.drop_last_partial_sequence) all.emplace_back("--keep-partial-validation");
  } else if (state.order == "instant") {
    add("train-samples", std::to_string(samples));
    add("packing", state.packing);
    if (state.packing != "none") add("pad-documents-to", std::to_string(state.pad_documents_to));
    if (state.packing != "none" && state.packing != "best_fit") {
      all.emplace_back("--leave-out-overlong");  // if it was not given, there are no such documents
    }
    if (state.last_token_as_label) all.emplace_back("--last-token-as-label");
  }
  if (state.global_batch > 0) add("global-batch-size", std::to_string(state.global_batch));
  if (state.rampup_batch.size() == 3) {
    all.emplace_back("--rampup-batch-size");
    for (const std::int64_t each : state.rampup_batch) all.push_back(std::to_string(each));
  }
  if (state.sampler == "cyclic") {
    add("dataloader-type", "cyclic");
    add("ranks", std::to_string(state.ranks));
    add("micro-batch-size", std::to_string(state.micro_batch));
    if (!state.data_sharding) all.emplace_back("--no-data-sharding");
  } else if (state.sampler == "full_validation") {
    all.emplace_back("--full-validation");
  } else if (state.sampler != "single") {
    throw config_error(path + ": the sampler " + state.sampler +
                       " has no flags here; expected single, cyclic or full_validation");
  }
  all.emplace_back("--allow-several-tokenizers");
  add("state", path);
  return all;
}

configured_run run_of(const given_state& given, std::int64_t samples) {
  const dataset::run_state& state = given.state;
  if (state.data.empty()) {
    throw config_error(given.path.string() + ": it names no data, so its run is unknown");
  }
  po::options_description own;
  add_diff_flags(own);
  const auto line =
      parse_run_options(flags_of(given.path.string(), state, samples), own, diff_help);
  return configured_run(*line);
}

/// Why a run with the options of `now` cannot resume from `saved`; empty if it can.
std::string resume_fault(const dataset::run_state& saved, const dataset::run_state& now) {
  try {
    dataset::require_same(saved, now);
    return {};
  } catch (const config_error& e) {
    return e.what();
  }
}

}  // namespace

int diff_runs(const command_line& line, const arguments& before, const arguments& changes,
              const dataset::diff_options& options) {
  if (changes.empty()) {
    throw misuse("there is nothing after --; expected the flags that change, e.g. -- --ranks 48",
                 diff_help);
  }
  po::options_description own;
  add_diff_flags(own);
  if (!parse_run_options(changes, own, diff_help)) return command::exit_done;  // --help
  const auto other = parse_run_options(changed(before, changes), own, diff_help);
  const configured_run a(line);
  const configured_run b(*other);
  for (const auto& [side, flags, which] :
       {std::tuple(&a, &line, 'A'), std::tuple(&b, &*other, 'B')}) {
    if (const std::string assumed = assumptions_of(*flags, side->run, false); !assumed.empty()) {
      command::tell(fmt::format("{}: {}: assumed {}\n", program_name, which, assumed));
    }
  }
  const dataset::run_difference found = compared(a, b, options);
  if (line.json) {
    formats::json_writer json;
    json.open('{').key("same").value(found.same()).key("kind").value("runs");
    write_runs(json, a, b, found);
    command::answer(json.close('}').text() + '\n');
  } else {
    command::answer(runs_text(a, b, found) + (found.same() ? "same\n" : "different\n"));
  }
  return found.same() ? command::exit_done : command::exit_failed;
}

int diff_states(const std::string& path_a, const std::string& path_b, bool as_json,
                const dataset::diff_options& options) {
  const given_state a = read_state(path_a);
  const given_state b = read_state(path_b);
  const auto fields = dataset::diff_states(a.state, b.state);
  const std::string fault = resume_fault(a.state, b.state);
  std::optional<configured_run> run_a;
  std::optional<configured_run> run_b;
  std::optional<dataset::run_difference> runs;
  std::string why_not;
  if (!fields.empty()) {
    // A run in the order `instant` has no end. So look this far after the later state.
    constexpr std::int64_t steps_after = 1000;
    const std::int64_t samples =
        std::max(a.state.consumed_samples, b.state.consumed_samples) +
        steps_after * std::max<std::int64_t>({1, a.state.global_batch, b.state.global_batch});
    try {
      run_a.emplace(run_of(a, samples));
      run_b.emplace(run_of(b, samples));
      runs = compared(*run_a, *run_b, options);
    } catch (const error& e) {
      why_not = e.what();
    }
  }
  if (as_json) {
    formats::json_writer json;
    json.open('{').key("same").value(fields.empty()).key("kind").value("states");
    json.key("fields").open('[');
    for (const dataset::state_difference& each : fields) {
      json.open('{').key("field").value(each.field).key("a").value(each.a);
      json.key("b").value(each.b).close('}');
    }
    json.close(']').key("resumes").value(fault.empty()).key("why_not");
    fault.empty() ? json.null() : json.value(fault);
    json.key("runs");
    if (runs) {
      json.open('{').key("same").value(runs->same());
      write_runs(json, *run_a, *run_b, *runs);
      json.close('}');
    } else {
      json.null();
    }
    command::answer(json.close('}').text() + '\n');
  } else if (fields.empty()) {
    command::answer("same: all fields are equal\n");
  } else {
    std::string text;
    const auto out = std::back_inserter(text);
    for (const dataset::state_difference& each : fields) {
      fmt::format_to(out, "{}: {} in A, {} in B\n", each.field,
                     each.a.empty() ? "not there" : each.a, each.b.empty() ? "not there" : each.b);
    }
    if (fault.empty()) {
      text += "a run with the options of B can resume from A\n";
    } else {
      text += "a run with the options of B cannot resume from A: " + fault + '\n';
    }
    if (runs) {
      text +=
          "the runs of A and B from their first sample on:\n" + runs_text(*run_a, *run_b, *runs);
    } else {
      text += "their runs were not compared: " + command::one_line(why_not) + '\n';
    }
    command::answer(text + "different: " + grouped(std::ssize(fields), "field") + '\n');
  }
  return fields.empty() ? command::exit_done : command::exit_failed;
}

}  // namespace millrace::inspect
