// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "watch/progress_state.hpp"

namespace millrace::preprocess {

/// A run at one moment, as metrics tell it.
struct metrics_sample {
  progress_state state = {};
  double unix_seconds = 0;        ///< the time of day
  double seconds = 0;             ///< since the run began
  std::uint64_t total_bytes = 0;  ///< on disk, of all inputs; 0 where it is not known
  bool finished = false;          ///< the run ended well
};

/// One JSON object on one line. Rates are those since `before`, which is an earlier sample of the
/// same run, or an empty one.
std::string metrics_json(const metrics_sample& now, const metrics_sample& before);

/// The same in Prometheus's text format: each metric with its HELP and TYPE. It has no rates, for
/// whoever reads it makes its own.
std::string metrics_prometheus(const metrics_sample& now);

}  // namespace millrace::preprocess
