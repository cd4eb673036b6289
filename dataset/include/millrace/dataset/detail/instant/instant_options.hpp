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
  std::int64_t source = 0;  ///< index in the list of all sources of the run
  double weight = 0;        ///< above 0; only ratios matter
};

/// The blend from `first_step` until the next segment begins.
struct schedule_segment {
  std::int64_t first_step = 0;  ///< ascending; 0 in the first segment
  std::vector<weighted_source> sources;
};

/// Returns the first position of a step; see `schedule::first_position`.
using first_position_function = std::function<std::int64_t(std::int64_t step)>;

/// A dataset of a run.
struct instant_source {
  std::filesystem::path prefix;  ///< without `.bin` and `.idx`
  /// The order of the source's samples depends on this name and not on the path. So the order stays
  /// the same if the files are moved. Empty: the file name of the prefix.
  std::string name;
  /// Largest number of epochs to serve; may be fractional. Empty: no limit.
  std::optional<double> most_epochs;
  /// Number of tokens in the `.bin`, if known. If empty, it is read from the headers of the files.
  std::optional<std::int64_t> token_count;
};

/// Everything that determines the order of a run.
struct instant_options {
  std::uint64_t seed = 1234;
  std::int64_t seq_len = 0;
  /// At least one segment; the first begins at step 0. `source` in a segment is an index into the
  /// sources of the run.
  std::vector<schedule_segment> segments;
  /// Returns the first position of a step: step * global_batch_size, or the position that a
  /// batch-size ramp-up gives. May be empty if there is only one segment. If it is empty, messages
  /// about limits count each sample as one step.
  first_position_function first_position_of;
  std::optional<std::int64_t> train_samples;
  std::size_t most_open = 512;  ///< maximum number of open `.idx` files; does not affect the order
};

}  // namespace millrace::dataset
