// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// The weights of a run's sources at a step, one per source. Telemetry compares them with the
/// samples that were served. Empty if the run has a single source, or no weights (a blend by
/// lengths).
MILLRACE_EXPORT std::vector<double> weights_at(const dataset::run_state& run, std::int64_t step);

/// The first step after `step` at which the weights change; -1 if they do not change again.
inline std::int64_t next_change(const dataset::run_state& run, std::int64_t step) {
  for (const dataset::state_segment& segment : run.schedule) {
    if (segment.first_step > step) return segment.first_step;
  }
  return -1;
}

}  // namespace millrace::loader
