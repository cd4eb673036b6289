// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace millrace::dataset {

/// A source in a segment of a schedule.
struct weighted_source {
  std::int64_t source = 0;  ///< its place in the list of all sources of the run
  double weight = 0;        ///< above zero; only ratios count
};

/// From a step on, what is blended. It holds until the next segment begins.
struct schedule_segment {
  std::int64_t first_step = 0;  ///< 0 in the first segment; ascending
  std::vector<weighted_source> sources;
};

/// The first position of a step, for `schedule::first_position`.
using first_position_function = std::function<std::int64_t(std::int64_t step)>;

/// A dataset of a run.
struct instant_source {
  std::filesystem::path prefix;  ///< without `.bin` and `.idx`
  /// What its order goes by; empty: the file name of the prefix. Moving the files changes nothing.
  std::string name;
  /// How often its tokens may be served; fractions of an epoch count. Nothing: without limit.
  std::optional<double> most_epochs;
  /// Tokens in the `.bin`, where they are known; else the headers are looked at.
  std::optional<std::int64_t> token_count;
};

/// All that decides the order of a run.
struct instant_options {
  std::uint64_t seed = 1234;
  std::int64_t seq_len = 0;
  /// At least one from step 0 on; `source` counts the sources given beside it.
  std::vector<schedule_segment> segments;
  /// First position of a step: step * global_batch_size, or what a ramp-up makes of it. May be empty
  /// if there is one segment; messages about limits then count samples as steps.
  first_position_function first_position_of;
  std::optional<std::int64_t> train_samples;
  std::size_t most_open = 512;  ///< indices kept open at once; it decides nothing else
};

}  // namespace millrace::dataset
