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

/// How the datasets of a part are blended, once it is known how long each of them is: what
/// megatron-core's BlendedDataset is given, and makes of it.
class MILLRACE_EXPORT blend_recipe {
 public:
  /// @param plan     of a part that is blended
  /// @param lengths  samples that each of its datasets has, in their order
  /// @throws config_error  a dataset has no samples, and there are no weights; there are too many
  ///                       datasets, or too many samples
  blend_recipe(const part_plan& plan, std::span<const std::int64_t> lengths, split_part part);

  /// Every sample of every dataset is served once.
  bool exhaustive() const noexcept { return shares_.empty(); }

  /// What the greedy choice weighs by; empty where the blend is exhaustive. Weights that were given
  /// are normalised for the second time here, as Megatron does, which need not change nothing.
  const std::vector<double>& shares() const noexcept { return shares_; }

  /// Samples of the blend.
  std::int64_t size() const noexcept { return size_; }

  std::span<const std::int64_t> lengths() const noexcept { return lengths_; }

  /// Writes the blend.
  ///
  /// @pre both columns have size() entries
  /// @throws config_error  it takes more samples of a dataset than that has
  void fill(blend_index_span out, blend_rounding rounding = blend_rounding::twice) const;

  /// Megatron's `unique_identifiers` of the blend.
  ///
  /// @param datasets  those of its datasets, in their order
  python_json identifiers(std::vector<python_json> datasets) const;

 private:
  split_part part_;
  std::vector<std::string> prefixes_;
  std::vector<std::int64_t> lengths_;
  std::vector<double> shares_;
  std::int64_t size_ = 0;
};

/// What the names of a blend's cache files start with: `<md5>-BlendedDataset-<part>`.
///
/// @param description  the text of its identifiers
inline std::string blend_cache_name(std::string_view description, split_part part) {
  return formats::md5_hex(description) + "-BlendedDataset-" + std::string(name(part));
}

}  // namespace millrace::dataset
