// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset/detail/megatron/blend_plan.hpp>
#include <millrace/dataset/detail/megatron/blend_rounding.hpp>
#include <millrace/dataset/detail/megatron/greedy_blend.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/formats/detail/md5.hpp>

namespace millrace::dataset {

/// The inputs of megatron-core's BlendedDataset, and the values that it derives from these inputs.
/// To create a recipe, the number of samples in each dataset of the part must be known.
class MILLRACE_EXPORT blend_recipe {
 public:
  /// @param plan     the plan of a part that is blended
  /// @param lengths  number of samples in each dataset of `plan`, in the order of `plan`
  /// @throws config_error  a dataset has no samples and there are no weights; there are too many
  ///                       datasets or too many samples
  blend_recipe(const part_plan& plan, std::span<const std::int64_t> lengths, split_part part);

  /// True if every sample of every dataset is served exactly once.
  bool exhaustive() const noexcept { return shares_.empty(); }

  /// Weights for the greedy choice; empty if the blend is exhaustive. Weights that the user gave
  /// are normalized a second time, as in Megatron; this can change their last bits.
  const std::vector<double>& shares() const noexcept { return shares_; }

  /// Number of samples in the blend.
  std::int64_t size() const noexcept { return size_; }

  std::span<const std::int64_t> lengths() const noexcept { return lengths_; }

  /// Computes the blend into `out`.
  ///
  /// @pre both columns of `out` have size() entries
  /// @throws config_error  the blend takes more samples from a dataset than the dataset has
  void fill(blend_index_span out, blend_rounding rounding = blend_rounding::twice) const;

  /// Megatron's `unique_identifiers` of the blend.
  ///
  /// @param datasets  the `unique_identifiers` of the blended datasets, in the order of the blend
  python_json identifiers(std::vector<python_json> datasets) const;

 private:
  split_part part_;
  std::vector<std::string> prefixes_;
  std::vector<std::int64_t> lengths_;
  std::vector<double> shares_;
  std::int64_t size_ = 0;
};

/// The common prefix of a blend's cache file names: `<md5>-BlendedDataset-<part>`.
///
/// @param description  the text of the blend's identifiers
inline std::string blend_cache_name(std::string_view description, split_part part) {
  return formats::md5_hex(description) + "-BlendedDataset-" + std::string(name(part));
}

}  // namespace millrace::dataset
