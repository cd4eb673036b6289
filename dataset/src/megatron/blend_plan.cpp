// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/blend_plan.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset/detail/megatron/data_flags.hpp>
#include <millrace/dataset/detail/megatron/normalize.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

/// ceil() for a count of samples.
MILLRACE_INLINE std::int64_t sample_ceil(double samples, std::string_view part) {
  const double whole = std::ceil(samples);
  if (!(whole < 0x1p53)) {
    throw config_error("the " + std::string(part) + " blend requests " + python_float(whole) +
                       " samples of one dataset, expected less than 2^53");
  }
  return static_cast<std::int64_t>(whole);
}

MILLRACE_INLINE std::vector<double> shares_of(const blend_list& list) {
  std::vector<double> shares = normalize(list.weights);
  for (std::size_t d = 0; d < shares.size(); ++d) {
    if (shares[d] > 0 && std::isfinite(shares[d])) continue;
    throw config_error("the weight of '" + list.prefixes[d] + "' is " +
                       python_float(list.weights[d]) + ", " + python_float(shares[d]) +
                       " of all weights: expected weights that are closer to each other");
  }
  return shares;
}

MILLRACE_INLINE part_plan plan_weighted(const blend_list& list, std::int64_t size, double surplus,
                                        std::string_view part) {
  part_plan plan{.blended = true, .weights = shares_of(list), .size = 0, .surplus = surplus};
  for (std::size_t d = 0; d < list.prefixes.size(); ++d) {
    const std::int64_t target = sample_ceil(static_cast<double>(size) * plan.weights[d], part);
    const std::int64_t built = sample_ceil(static_cast<double>(target) * (1 + surplus), part);
    plan.datasets.push_back({list.prefixes[d], built});
    *plan.size += target;
  }
  return plan;
}

}  // namespace detail

MILLRACE_INLINE data_plan plan_data(const data_blends& blends, const part_sizes& sizes) {
  data_plan plans;
  const bool split = blends.blend.has_value();
  for (const split_part part : split_parts) {
    const auto p = static_cast<std::size_t>(part);
    const std::string part_name(name(part));
    if (!split && !blends.per_part[p]) continue;
    const blend_list& list = split ? *blends.blend : *blends.per_part[p];
    std::optional<std::int64_t> size = sizes[p];
    if (size && *size < 0) {
      throw config_error("the " + part_name + " part requests " + std::to_string(*size) +
                         " samples, expected 0 or more");
    }
    if (size && *size >= std::int64_t{1} << 53) {
      throw config_error("the " + part_name + " part requests " + std::to_string(*size) +
                         " samples, expected less than 2^53");
    }
    if (part == split_part::valid && blends.full_validation) size.reset();
    if (list.weighted() && !size) {
      // A full validation serves all samples, so the user cannot give a number of samples.
      const bool all = part == split_part::valid && blends.full_validation;
      throw config_error(
          "the " + part_name + " part has weights, but no number of samples: " +
          (all ? "leave out the weights, or --full-validation"
               : "give --" + part_name + "-samples N (0 for none), or leave out the weights"));
    }
    if (split && !split_matrix(*blends.split).has(part)) continue;

    const bool apart = !split && part == split_part::valid && blends.multiple_validation_sets;
    // If a single dataset has a weight, Megatron blends it, unless parts have their own data.
    const bool alone = list.prefixes.size() == 1 && (!split || !list.weighted());
    if (alone || apart) {
      plans[p] = part_plan{.size = size};
      for (const std::string& prefix : list.prefixes) plans[p]->datasets.push_back({prefix, size});
    } else if (list.weighted()) {
      plans[p] = detail::plan_weighted(list, *size, blends.surplus, part_name);
    } else {
      plans[p] = part_plan{.blended = true, .size = size};
      for (const std::string& prefix : list.prefixes) plans[p]->datasets.push_back({prefix, {}});
    }
  }
  return plans;
}

}  // namespace millrace::dataset
