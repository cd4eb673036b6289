// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "watch/progress_state.hpp"

namespace millrace::preprocess {

/// One sample of a run's metrics.
struct metrics_sample {
  progress_state state = {};
  double unix_seconds = 0;        ///< Unix time
  double seconds = 0;             ///< seconds since the run began
  std::uint64_t total_bytes = 0;  ///< size of all inputs on disk; 0 if unknown
  bool finished = false;          ///< the run succeeded
};

/// Returns a sample as one JSON object on one line. Rates are averages since `before`, which is an
/// earlier sample of the same run, or an empty one.
std::string metrics_json(const metrics_sample& now, const metrics_sample& before);

/// Returns a sample in Prometheus's text format: each metric with its HELP and TYPE. It has no
/// rates, because Prometheus computes them.
std::string metrics_prometheus(const metrics_sample& now);

}  // namespace millrace::preprocess
