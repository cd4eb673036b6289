// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/dataset/megatron/blend_plan.hpp>
#include <millrace/dataset/megatron/gpt_description.hpp>
#include <millrace/dataset/megatron/greedy_blend.hpp>
#include <millrace/dataset/megatron/normalize.hpp>
#include <millrace/dataset/megatron/python_json.hpp>
#include <millrace/dataset/megatron/split.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/md5.hpp>

namespace millrace::dataset {

/// How the datasets of a part are blended, once it is known how long each of them is: what
/// megatron-core's BlendedDataset is given, and makes of it.
class blend_recipe {
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

// ---------------------------------------------------------------------------------------------

inline blend_recipe::blend_recipe(const part_plan& plan, std::span<const std::int64_t> lengths,
                                  split_part part)
    : part_(part), lengths_(lengths.begin(), lengths.end()) {
  assert(plan.blended && plan.datasets.size() == lengths.size());
  detail::check_blended_count(lengths.size());
  for (const planned_dataset& each : plan.datasets) prefixes_.push_back(each.prefix);
  if (!plan.weights.empty()) {
    shares_ = normalize(plan.weights);
    size_ = *plan.size;
    return;
  }
  for (std::size_t d = 0; d < lengths_.size(); ++d) {
    if (lengths_[d] < 1) {
      throw config_error("'" + prefixes_[d] + "' has no samples for " + std::string(name(part)) +
                         ": leave it out there, or give more of it to that part by --split");
    }
    if (lengths_[d] > std::numeric_limits<std::int64_t>::max() - size_) {
      throw config_error("the datasets of the " + std::string(name(part)) +
                         " blend have more than 2^63 - 1 samples");
    }
    size_ += lengths_[d];
  }
  if (!plan.size) return;
  size_ = std::min(size_, *plan.size);
  shares_ = normalize(std::vector<double>(lengths_.begin(), lengths_.end()));
}

inline void blend_recipe::fill(blend_index_span out, blend_rounding rounding) const {
  assert(out.dataset_index.size() == static_cast<std::size_t>(size_));
  if (exhaustive()) return fill_exhaustive_blend(lengths_, out, rounding);
  fill_greedy_blend(shares_, out, rounding);
  std::vector<std::int64_t> taken(lengths_.size());
  for (const std::int16_t d : out.dataset_index) ++taken[static_cast<std::size_t>(d)];
  for (std::size_t d = 0; d < taken.size(); ++d) {
    if (taken[d] <= lengths_[d]) continue;
    throw config_error("the " + std::string(name(part_)) + " blend takes " +
                       std::to_string(taken[d]) + " samples of '" + prefixes_[d] + "', which has " +
                       std::to_string(lengths_[d]) +
                       ": raise --mid-level-dataset-surplus, two- or ten-fold");
  }
}

inline python_json blend_recipe::identifiers(std::vector<python_json> datasets) const {
  python_json weights = python_json::array();
  for (const double share : shares_) weights.push_back(python_json::real(share));
  if (exhaustive()) {
    for (const std::int64_t length : lengths_) weights.push_back(python_json::integer(length));
  }
  python_json all = python_json::object();
  all.set("class", python_json::string("BlendedDataset"));
  all.set("datasets", python_json::array(std::move(datasets)));
  all.set("split", python_json::string(name(part_)));
  all.set("weights", std::move(weights));
  all.set("size", exhaustive() ? python_json() : python_json::integer(size_));
  return all;
}

}  // namespace millrace::dataset
