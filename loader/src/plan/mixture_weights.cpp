// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/plan/mixture_weights.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <millrace/dataset/state.hpp>

namespace millrace::loader {

MILLRACE_INLINE std::vector<double> weights_at(const dataset::run_state& run, std::int64_t step) {
  std::vector<double> weights;
  if (run.data.size() < 2) return weights;
  const bool weighted = std::ranges::any_of(
      run.data, [](const dataset::state_source& source) { return source.weight != 1; });
  if (run.schedule.empty()) {
    if (!weighted && run.order == "megatron") return weights;
    for (const dataset::state_source& source : run.data) weights.push_back(source.weight);
    return weights;
  }
  weights.resize(run.data.size());
  for (const dataset::state_segment& segment : run.schedule) {
    if (segment.first_step > step) break;
    std::ranges::fill(weights, 0.0);
    for (std::size_t i = 0; i < segment.sources.size(); ++i) {
      weights[static_cast<std::size_t>(segment.sources[i])] = segment.weights[i];
    }
  }
  return weights;
}

}  // namespace millrace::loader
