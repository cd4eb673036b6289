// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/blend_recipe.hpp>

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/detail/megatron/blend_plan.hpp>
#include <millrace/dataset/detail/megatron/greedy_blend.hpp>
#include <millrace/dataset/detail/megatron/normalize.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

MILLRACE_INLINE blend_recipe::blend_recipe(const part_plan& plan,
                                           std::span<const std::int64_t> lengths, split_part part)
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
                         ": omit it from that blend, or give that part a larger weight in --split");
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

MILLRACE_INLINE void blend_recipe::fill(blend_index_span out, blend_rounding rounding) const {
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
                       ": raise --mid-level-dataset-surplus by a factor of 2 to 10");
  }
}

MILLRACE_INLINE python_json blend_recipe::identifiers(std::vector<python_json> datasets) const {
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
