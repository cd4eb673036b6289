// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/run/instant_run.hpp>

#include <algorithm>
#include <cstdint>
#include <vector>

#include <millrace/dataset/instant/instant_order.hpp>
#include <millrace/dataset/run/state.hpp>

namespace millrace::dataset {

MILLRACE_INLINE std::vector<std::int64_t> instant_run::positions_with(std::int64_t source,
                                                                      sequence_range sequences,
                                                                      std::int64_t before) const {
  std::vector<std::int64_t> positions;
  if (sequences.size() <= 0) return positions;
  const auto search = order_->open(source);
  const std::int64_t first = search->first_token_of(sequences.first);
  const std::int64_t last =
      search->first_token_of(sequences.last - 1) + search->columns().length(sequences.last - 1);
  const window_order& order = order_->windows(source);
  const std::int64_t taken_before = taken(source, before);
  for (std::int64_t e = 0; e * order.windows_per_epoch() < taken_before; ++e) {
    const epoch_windows windows = order.epoch(e);
    const std::int64_t offset = windows.offset();
    if (first >= last || last <= offset) continue;
    // A token that begins a window is also the last label of the one before.
    const std::int64_t least = first <= offset ? 0 : (first - 1 - offset) / seq_len();
    const std::int64_t most = std::min(windows.count() - 1, (last - 1 - offset) / seq_len());
    for (std::int64_t w = least; w <= most; ++w) {
      const std::int64_t k = e * windows.count() + windows.turn_of(w);
      if (k >= taken_before) continue;
      if (const auto at = order_->blend().position_of({source, k})) positions.push_back(*at);
    }
  }
  std::ranges::sort(positions);
  return positions;
}

namespace detail {

MILLRACE_INLINE run_state describe(const std::vector<instant_source>& sources,
                                   const instant_options& options) {
  run_state state;
  state.order = "instant";
  state.seed = options.seed;
  state.seq_len = options.seq_len;
  state.samples.assign(1, options.train_samples.value_or(-1));
  for (const instant_source& source : sources) {
    state.data.push_back({.prefix = source.prefix.string(), .name = source.name});
  }
  if (options.segments.size() == 1 && options.segments[0].sources.size() == sources.size()) {
    for (const weighted_source& each : options.segments[0].sources) {
      state.data[static_cast<std::size_t>(each.source)].weight = each.weight;
    }
    return state;
  }
  for (const schedule_segment& segment : options.segments) {
    state_segment& to = state.schedule.emplace_back();
    to.first_step = segment.first_step;
    for (const weighted_source& each : segment.sources) {
      to.sources.push_back(each.source);
      to.weights.push_back(each.weight);
    }
  }
  return state;
}

}  // namespace detail

}  // namespace millrace::dataset
