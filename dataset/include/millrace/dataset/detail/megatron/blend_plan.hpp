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

/// A dataset to build from one prefix.
struct planned_dataset {
  std::string prefix;
  std::optional<std::int64_t> num_samples;  ///< nullopt: one epoch
  bool operator==(const planned_dataset&) const = default;
};

/// A plan of what to build for one part: train, valid or test.
struct part_plan {
  std::vector<planned_dataset> datasets = {};

  /// True if the datasets are blended into one. Otherwise there is one dataset, or, with
  /// `--multiple-validation-sets`, several that are served separately.
  bool blended = false;

  /// One per dataset, normalized once. Empty: the datasets are blended by their lengths.
  std::vector<double> weights = {};

  /// Samples in the blend. nullopt: all available samples. If the datasets are blended by length,
  /// the size is capped at the available samples.
  std::optional<std::int64_t> size = {};

  /// Fraction of extra samples to build for each weighted entry of `datasets`.
  double surplus = 0.005;
};

/// Requested samples for train, valid and test; nullopt means one epoch.
using part_sizes = std::array<std::optional<std::int64_t>, 3>;

/// The plans for train, valid and test; nullopt for a part without data.
using data_plan = std::array<std::optional<part_plan>, 3>;

/// Plans what to build, by the rules of megatron-core's BlendedMegatronDatasetBuilder.
///
/// With weights, let a dataset's share be its normalized weight. The dataset contributes c =
/// ceil(size * share) samples to the blend, and ceil(c * (1 + surplus)) samples are built for it.
/// The blend's size is the sum of the contributions. Without weights, each dataset is built for one
/// epoch.
///
/// @throws config_error  there are weights but no size; a size is negative; a share is not a number
///                       above 0
MILLRACE_EXPORT data_plan plan_data(const data_blends& blends, const part_sizes& sizes);

}  // namespace millrace::dataset
