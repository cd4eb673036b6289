// SPDX-License-Identifier: Apache-2.0
#include "state_flag.hpp"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <optional>
#include <string>
#include <utility>

#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>
#include <millrace/io/file_mapping.hpp>

namespace millrace::inspect {

namespace po = boost::program_options;

const char* const state_flag_help =
    R"(  --state FILE              apply the edits and the schedule of a saved state
)";

namespace {

/// Returns the state of the run that the flags describe. Options that `state` does not contain are
/// left out.
dataset::run_state described(dataset::run_state run, const run_configuration& of,
                             const dataset::run_state& state) {
  const dataset::sampler_options& ranks = of.sampler;
  if (ranks.rampup) {
    run.rampup_batch = {ranks.rampup->start, ranks.rampup->increment, ranks.rampup->samples};
  }
  if (ranks.type == dataset::sampler_type::cyclic) {
    run.micro_batch = ranks.batch_size;
    run.ranks = ranks.world_size;
    run.sampled = of.order->end();
    run.data_sharding = ranks.data_sharding;
  }
  run.sampler = name(ranks.type);
  if (run.order == "instant") run.schedule = state.schedule;  // the run was created from it
  if (state.data.empty()) {
    dataset::run_state same = state;
    same.order = run.order;
    same.seed = run.seed;
    if (state.seq_len != 0) same.seq_len = run.seq_len;
    same.packing = run.packing;
    same.last_token_as_label = run.last_token_as_label;
    same.sampler = run.sampler;
    if (!state.rampup_batch.empty()) same.rampup_batch = run.rampup_batch;
    run = same;
  }
  run.global_batch = state.global_batch == 0 ? 0 : ranks.samples_of_step();
  run.edits = state.edits;
  run.tokenizer = state.tokenizer;
  for (std::size_t i = 0; i < std::min(run.data.size(), state.data.size()); ++i) {
    const dataset::state_source now = run.data[i];
    run.data[i] = state.data[i];
    run.data[i].prefix = now.prefix;
    run.data[i].name = now.name;
    // With a single dataset, the weight has no effect.
    if (run.data.size() > 1) run.data[i].weight = now.weight;
  }
  return run;
}

}  // namespace

void add_state_flag(po::options_description& own) {
  own.add_options()("state", po::value<std::string>());
}

std::optional<given_state> given_state_of(const command_line& line) {
  if (line.values.count("state") == 0) return std::nullopt;
  return read_state(*line.find<std::string>("state"));
}

given_state read_state(const std::filesystem::path& path) {
  const io::file_mapping file(path);
  const auto bytes = file.bytes();
  try {
    return given_state{
        path, dataset::parse_state({reinterpret_cast<const char*>(bytes.data()), bytes.size()})};
  } catch (const format_error& e) {
    throw e.in(path);
  }
}

std::vector<dataset::edit> edits_of(const given_state& given, dataset::run_state order,
                                    const run_configuration& of) {
  const dataset::run_state& state = given.state;
  try {
    dataset::require_same(state, described(std::move(order), of, state));
    if (of.sampler.type != dataset::sampler_type::single && !state.edits.empty()) {
      throw config_error("it has " + counted(std::ssize(state.edits), "edit") +
                         ", expected none: only the single sampler can skip or replay samples");
    }
  } catch (const config_error& e) {
    throw config_error(given.path.string() + ": " + e.what());
  }
  return state.edits;
}

}  // namespace millrace::inspect
