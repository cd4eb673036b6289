// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <millrace/dataset/detail/megatron/data_flags.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// A dataset of one prefix, to be built.
struct planned_dataset {
  std::string prefix;
  std::optional<std::int64_t> num_samples;  ///< nothing: one epoch
  bool operator==(const planned_dataset&) const = default;
};

/// What is built for train, valid or test.
struct part_plan {
  std::vector<planned_dataset> datasets = {};

  /// They are served as one. Else there is one, or, of `--multiple-validation-sets`, each is for
  /// itself.
  bool blended = false;

  /// Normalised once; empty where datasets are blended by their lengths.
  std::vector<double> weights = {};

  /// Samples of the blend. Nothing: all there are. By length, it is capped by what there is.
  std::optional<std::int64_t> size = {};

  /// How many more samples than wanted are built of each dataset that has a weight: of `datasets`.
  double surplus = 0.005;
};

/// Samples asked for: train, valid, test; nothing for one epoch of what there is.
using part_sizes = std::array<std::optional<std::int64_t>, 3>;

/// What Megatron builds for train, valid and test; nothing for a part without data.
using data_plan = std::array<std::optional<part_plan>, 3>;

/// Says what is to be built, by the rules of megatron-core's BlendedMegatronDatasetBuilder.
///
/// With weights, dataset d is to give ceil(size * share) samples, and has ceil(that * (1 +
/// surplus)) built; the blend has the sum of the former. Without, each dataset is built for one
/// epoch.
///
/// @throws config_error  weights without a size, a negative size, a share that is no number above 0
MILLRACE_EXPORT data_plan plan_data(const data_blends& blends, const part_sizes& sizes);

}  // namespace millrace::dataset
