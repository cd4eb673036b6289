// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include <millrace/dataset/detail/megatron/greedy_blend.hpp>

/// The state of a greedy blend.
namespace millrace::dataset {

namespace detail {

/// Groups of datasets with equal weight.
///
/// Of two datasets with equal weight, the one with fewer samples lags further behind its share. If
/// both have equally many samples, the first one wins. So the datasets of a group are served
/// round-robin, and only the next dataset of each group has to be considered. A dataset with a
/// unique weight is a group by itself.
class greedy_groups {
 public:
  /// @param limits  number of samples in each dataset; empty for no limits
  greedy_groups(std::span<const double> weights, std::span<const std::int64_t> limits);

  std::size_t size() const noexcept { return weights_.size(); }
  const double* weights() const noexcept { return weights_.data(); }

  /// For each group, the number of samples that its next dataset has contributed; infinity if all
  /// datasets of the group are exhausted.
  const double* counts() const noexcept { return counts_.data(); }

  /// The group's next dataset.
  std::int16_t next_of(std::size_t group) const noexcept { return members_[turns_[group].next]; }

  /// Writes the next sample of the group.
  /// @return true if the group's count has changed
  bool take(std::size_t group, std::int64_t at, blend_index_span out) noexcept {
    turn& t = turns_[group];
    out.dataset_index[static_cast<std::size_t>(at)] = members_[t.next];
    out.dataset_sample_index[static_cast<std::size_t>(at)] = t.round;
    if (++t.next != t.end) return false;
    t.next = t.begin;
    ++t.round;
    counts_[group] =
        t.round == t.limit ? std::numeric_limits<double>::infinity() : static_cast<double>(t.round);
    return true;
  }

 private:
  /// Members [begin, end) are served round-robin. The members before `next` have contributed
  /// `round` + 1 samples each. The other members have contributed `round` samples each.
  struct turn {
    std::uint32_t begin, end, next;
    std::int64_t round, limit;
  };

  std::vector<double> weights_;
  std::vector<double> counts_;
  std::vector<turn> turns_;
  std::vector<std::int16_t> members_;  // datasets by group, ascending within a group
};

}  // namespace detail
}  // namespace millrace::dataset
