// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// A parallelism axis.
enum class parallel_axis : std::uint8_t { tp, cp, ep, dp, pp };
inline constexpr std::array<const char*, 5> parallel_axis_names = {"tp", "cp", "ep", "dp", "pp"};

/// One number per axis: the number of ranks along it, or the index of one rank along it.
struct axis_values {
  std::int64_t tp = 1;
  std::int64_t cp = 1;
  std::int64_t ep = 1;
  std::int64_t dp = 1;
  std::int64_t pp = 1;

  std::int64_t& operator[](parallel_axis axis) noexcept {
    std::int64_t* all[] = {&tp, &cp, &ep, &dp, &pp};
    return *all[static_cast<std::size_t>(axis)];
  }
  std::int64_t operator[](parallel_axis axis) const noexcept {
    const std::int64_t all[] = {tp, cp, ep, dp, pp};
    return all[static_cast<std::size_t>(axis)];
  }
  friend bool operator==(const axis_values&, const axis_values&) = default;
};

/// Megatron's default numbering of ranks: the first axis changes fastest.
inline constexpr std::string_view megatron_rank_order = "tp-cp-ep-dp-pp";

/// A grid of ranks, like `RankGenerator` of megatron.core.parallel_state (megatron-core 0.16.1). An
/// order such as "tp-cp-ep-dp-pp" lists the axes; the first axis changes fastest. In this order,
/// rank = tp + TP * (cp + CP * (ep + EP * (dp + DP * pp))). A value type; thread-safe.
///
///     const millrace::loader::rank_grid grid({.tp = 4, .dp = 8});
///     const auto tensor_groups = grid.groups("tp");  // {0, 1, 2, 3}, {4, 5, 6, 7}, ...
class MILLRACE_EXPORT rank_grid {
 public:
  /// @param order   axis names in any case, separated by `-`; axes with one rank may be omitted
  /// @param offset  the lowest rank of the grid
  /// @throws config_error  a size is below 1; an axis with more than one rank is not in the order;
  ///                       the order repeats an axis or has an unknown axis; CP and EP are both
  ///                       above 1 (Megatron has separate grids for them); or there are more than
  ///                       2^62 ranks
  explicit rank_grid(const axis_values& sizes, std::string_view order = megatron_rank_order,
                     std::int64_t offset = 0);

  const axis_values& sizes() const noexcept { return sizes_; }
  std::int64_t size() const noexcept { return size_; }
  std::int64_t offset() const noexcept { return offset_; }
  /// True if `pp` is the last axis in the order.
  bool ends_with_stages() const noexcept { return steps_.back().axis == parallel_axis::pp; }

  /// The index of a rank along each axis.
  /// @throws config_error  the rank does not exist
  axis_values place_of(std::int64_t rank) const;

  /// The inverse of `place_of`.
  /// @throws config_error  an index is out of range
  std::int64_t rank_of(const axis_values& place) const;

  /// Divides the ranks into groups. The ranks of a group differ only along the given axes, e.g.
  /// "tp" or "dp-cp". Groups, and the ranks of each group, are in Megatron's order.
  ///
  /// @throws config_error  an axis name is unknown
  std::vector<std::vector<std::int64_t>> groups(std::string_view axes) const;

 private:
  struct step {
    parallel_axis axis;
    std::int64_t stride;
  };
  using steps = std::vector<step>;

  static std::vector<parallel_axis> parse(std::string_view text);
  /// Numbers the places along some axes, so that the first axis changes fastest. Returns how much
  /// the place with the number `index` adds to the rank.
  std::int64_t sum_of(const steps& along, std::int64_t index) const noexcept;

  axis_values sizes_;
  std::int64_t offset_;
  std::int64_t size_ = 1;
  steps steps_;  // the axis that changes fastest comes first
};

}  // namespace millrace::loader
