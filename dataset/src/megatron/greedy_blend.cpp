// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/greedy_blend.hpp>

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <millrace/error.hpp>

#include "greedy_groups.hpp"
#include "greedy_lanes.hpp"
#include "greedy_lanes_avx512.hpp"

namespace millrace::dataset {

namespace detail {

/// Serves samples in blocks. In each block, considers only the few groups (datasets of equal
/// weight) that can win a sample of the block.
///
/// While a group is not served, its error never decreases as the position increases. So until the
/// group is served, its error at the end of a block is an upper bound. A group whose bound is at
/// most `floor` is left out of the block. The block ends as soon as no remaining group has an error
/// above `floor`. Until then, a group that was left out cannot win or tie. The block length affects
/// only the speed.
template <class Kernel, blend_rounding Rounding>
class greedy_blocks {
 public:
  greedy_blocks(greedy_groups groups, blend_index_span out)
      : groups_(std::move(groups)),
        out_(out),
        size_(static_cast<std::int64_t>(out.dataset_index.size())),
        keys_(groups_.size()) {}

  void run() {
    if (groups_.size() <= Kernel::most_lanes) {
      Kernel::pack(groups_, keys_.data(), -1.0, lanes_);
      steps(size_, -std::numeric_limits<double>::infinity());
      assert(at_ == size_);
    }
    while (at_ < size_) block();
  }

 private:
  void steps(std::int64_t end, double floor) {
    at_ = Kernel::template steps<Rounding>(lanes_, groups_, out_, at_, end, floor);
  }

  void block() {
    const std::int64_t begin = at_;
    const std::int64_t end = std::min(size_, begin + length_);
    Kernel::template errors<Rounding>(groups_, blend_position(end - 1), keys_.data());
    if (find_floor()) {
      Kernel::pack(groups_, keys_.data(), floor_, lanes_);
      steps(end, floor_);
    }
    // If too many groups are tied, or no group is certain to win, serve one sample by comparing all
    // groups.
    if (at_ == begin) look_at_all();
    length_ = at_ == end ? std::min(length_ + 1, most_length)
                         : std::max(length_ - length_ / 4, shortest_length);
  }

  /// Searches for a floor such that the number of groups above it is about the number of lanes.
  /// Starts at the previous floor.
  bool find_floor() {
    constexpr std::size_t enough = Kernel::most_lanes - Kernel::most_lanes / 4;
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    double stride = 1.0 / 64;
    for (int probe = 0; probe < 40; ++probe) {
      const std::size_t count = Kernel::above(keys_.data(), keys_.size(), floor_);
      const bool fits = count <= Kernel::most_lanes;
      if (fits && (count >= enough || (probe >= 8 && count > 0))) return true;
      (fits ? high : low) = floor_;
      if (std::isinf(low) || std::isinf(high)) {
        floor_ += fits ? -stride : stride;
        stride *= 2;
      } else {
        floor_ = low + (high - low) / 2;
      }
    }
    return false;
  }

  void look_at_all() {
    Kernel::template errors<Rounding>(groups_, blend_position(at_), keys_.data());
    std::size_t winner = 0;
    for (std::size_t g = 1; g < keys_.size(); ++g) {
      if (keys_[g] < keys_[winner]) continue;
      if (keys_[g] > keys_[winner] || groups_.next_of(g) < groups_.next_of(winner)) winner = g;
    }
    groups_.take(winner, at_, out_);
    ++at_;
  }

  static constexpr std::int64_t shortest_length = 4;
  static constexpr std::int64_t most_length = 4096;

  greedy_groups groups_;
  blend_index_span out_;
  std::int64_t size_;
  std::int64_t at_ = 0;
  std::int64_t length_ = 32;
  double floor_ = 0.0;
  std::vector<double> keys_;
  typename Kernel::lanes lanes_;
};

template <class Kernel>
void run_greedy(greedy_groups groups, blend_index_span out, blend_rounding rounding) {
  if (rounding == blend_rounding::twice) {
    greedy_blocks<Kernel, blend_rounding::twice>(std::move(groups), out).run();
  } else {
    greedy_blocks<Kernel, blend_rounding::fused>(std::move(groups), out).run();
  }
}

MILLRACE_INLINE bool is_there(greedy_kernel kernel) noexcept {
#if defined(__x86_64__)
  if (kernel == greedy_kernel::avx512) return avx512_kernel::is_there();
#endif
  return kernel == greedy_kernel::plain;
}

MILLRACE_INLINE void fill_blend_by(greedy_kernel kernel, std::span<const double> weights,
                                   std::span<const std::int64_t> limits, blend_index_span out,
                                   blend_rounding rounding) {
  assert(out.dataset_index.size() == out.dataset_sample_index.size());
  greedy_groups groups(weights, limits);
#if defined(__x86_64__)
  if (kernel == greedy_kernel::avx512) {
    return run_greedy<avx512_kernel>(std::move(groups), out, rounding);
  }
#endif
  assert(kernel == greedy_kernel::plain);
  run_greedy<plain_kernel>(std::move(groups), out, rounding);
}

MILLRACE_INLINE greedy_kernel best_kernel() noexcept {
  return is_there(greedy_kernel::avx512) ? greedy_kernel::avx512 : greedy_kernel::plain;
}

MILLRACE_INLINE void check_blended_count(std::size_t count) {
  if (count == 0 || count > most_blended_datasets) {
    throw config_error("a blend has " + std::to_string(count) + " datasets, expected 1 to " +
                       std::to_string(most_blended_datasets));
  }
}

}  // namespace detail

MILLRACE_INLINE void fill_greedy_blend(std::span<const double> weights, blend_index_span out,
                                       blend_rounding rounding) {
  detail::check_blended_count(weights.size());
  for (std::size_t d = 0; d < weights.size(); ++d) {
    if (weights[d] >= 0.0 && weights[d] <= 1.0) continue;
    throw config_error("the normalized weight of dataset " + std::to_string(d) + " is " +
                       std::to_string(weights[d]) + ", expected 0 to 1");
  }
  detail::fill_blend_by(detail::best_kernel(), weights, {}, out, rounding);
}

MILLRACE_INLINE void fill_exhaustive_blend(std::span<const std::int64_t> sizes,
                                           blend_index_span out, blend_rounding rounding) {
  detail::check_blended_count(sizes.size());
  std::int64_t left = static_cast<std::int64_t>(out.dataset_index.size());
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] < 1) {
      throw config_error("dataset " + std::to_string(d) + " of a blend has " +
                         std::to_string(sizes[d]) + " samples, expected 1 or more");
    }
    if (sizes[d] > left) {
      throw config_error("the datasets of a blend have more samples than the blend can hold, " +
                         std::to_string(out.dataset_index.size()));
    }
    left -= sizes[d];
  }
  if (left != 0) {
    throw config_error("the datasets of a blend have " + std::to_string(left) +
                       " samples fewer than the blend holds");
  }
  const auto total = static_cast<double>(out.dataset_index.size());
  std::vector<double> weights(sizes.size());
  std::transform(sizes.begin(), sizes.end(), weights.begin(),
                 [total](std::int64_t size) { return static_cast<double>(size) / total; });
  detail::fill_blend_by(detail::best_kernel(), weights, sizes, out, rounding);
}

}  // namespace millrace::dataset
