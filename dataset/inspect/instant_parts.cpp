// SPDX-License-Identifier: Apache-2.0
#include "instant_parts.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include <millrace/dataset/detail/instant/index_columns.hpp>
#include <millrace/dataset/state.hpp>
#include <millrace/error.hpp>

namespace millrace::inspect {

namespace {

/// Sets the names of the sources from the state. These names determine the shuffles, and may differ
/// from the file names. The names are assigned in list order. If the flags list the datasets in a
/// different order than the state, a dataset would get the wrong name. To detect this, the length
/// of each dataset must match the state.
void name_sources(const given_state& given, std::vector<dataset::instant_source>& sources) {
  const std::vector<dataset::state_source>& saved = given.state.data;
  for (std::size_t i = 0; i < std::min(sources.size(), saved.size()); ++i) {
    if (saved[i].name.empty()) continue;
    if (saved[i].tokens != sources[i].token_count) {
      throw config_error(fmt::format(
          "{}: {} has {}, but data[{}] of the state, \"{}\", has {}; pass the datasets of the "
          "state in the same order",
          given.path.string(), sources[i].prefix.string(),
          counted(*sources[i].token_count, "token"), i, saved[i].name, saved[i].tokens));
    }
    sources[i].name = saved[i].name;
  }
}

std::vector<dataset::schedule_segment> segments_of(const given_state& given,
                                                   const dataset::blend_list& data) {
  if (data.weighted()) {
    throw config_error(
        given.path.string() +
        ": the schedule of the state sets the weights; pass the prefixes without weights");
  }
  std::vector<dataset::schedule_segment> segments;
  for (const dataset::state_segment& each : given.state.schedule) {
    dataset::schedule_segment& segment = segments.emplace_back();
    segment.first_step = each.first_step;
    for (std::size_t i = 0; i < each.sources.size(); ++i) {
      segment.sources.push_back({each.sources[i], each.weights[i]});
    }
  }
  return segments;
}

}  // namespace

instant_parts instant_parts_of(const dataset::blend_list& data, std::int64_t seq_length,
                               std::int64_t seed, const dataset::batch_steps& steps,
                               std::optional<std::int64_t> train_samples,
                               const std::optional<given_state>& given) {
  instant_parts parts;
  parts.options.seed = static_cast<std::uint64_t>(seed);
  parts.options.seq_len = seq_length;
  parts.options.first_position_of = [=](std::int64_t step) { return steps.first_position(step); };
  parts.options.train_samples = train_samples;
  dataset::schedule_segment all{0, {}};
  for (std::size_t i = 0; i < data.prefixes.size(); ++i) {
    const dataset::index_columns columns(data.prefixes[i], dataset::index_access::pread);
    parts.sources.push_back({data.prefixes[i], "", {}, columns.token_count()});
    const double weight = data.weighted() ? data.weights[i]
                                          : static_cast<double>(std::max<std::int64_t>(
                                                1, (columns.token_count() - 1) / seq_length));
    all.sources.push_back({static_cast<std::int64_t>(i), weight});
  }
  if (given) name_sources(*given, parts.sources);
  if (given && !given->state.schedule.empty()) {
    parts.options.segments = segments_of(*given, data);
  } else {
    parts.options.segments.push_back(std::move(all));
  }
  return parts;
}

}  // namespace millrace::inspect
