// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include <millrace/export.hpp>

namespace millrace::loader {

/// A way to share work among ranks.
enum class parallel_axis : std::uint8_t { tp, cp, ep, dp, pp };
inline constexpr std::array<const char*, 5> parallel_axis_names = {"tp", "cp", "ep", "dp", "pp"};

/// A number for each axis: how many ranks there are along it, or where one of them is.
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

/// How Megatron numbers ranks when it does nothing else: the first axis changes fastest.
inline constexpr std::string_view megatron_rank_order = "tp-cp-ep-dp-pp";

/// Ranks as a grid: `RankGenerator` of megatron.core.parallel_state (megatron-core 0.16.1). An
/// order such as "tp-cp-ep-dp-pp" says which axis changes fastest: with it rank = tp + TP * (cp +
/// CP * (ep + EP * (dp + DP * pp))). A value; any thread.
class MILLRACE_EXPORT rank_grid {
 public:
  /// @param order   names of axes, any case, with `-` between; an axis of one rank may be left out
  /// @param offset  number of the first rank
  /// @throws config_error  a size is below 1; an axis of more than one rank is not in the order;
  /// the
  ///                       order names an axis twice, or something else; CP and EP are both above 1
  ///                       (Megatron has a grid for each); there are more than 2^62 ranks.
  explicit rank_grid(const axis_values& sizes, std::string_view order = megatron_rank_order,
                     std::int64_t offset = 0);

  const axis_values& sizes() const noexcept { return sizes_; }
  std::int64_t size() const noexcept { return size_; }
  std::int64_t offset() const noexcept { return offset_; }
  /// Whether pp is the last axis that the order names.
  bool ends_with_stages() const noexcept { return steps_.back().axis == parallel_axis::pp; }

  /// @throws config_error  there is no such rank
  axis_values place_of(std::int64_t rank) const;

  /// The inverse.
  /// @throws config_error  there is no such place
  std::int64_t rank_of(const axis_values& place) const;

  /// The ranks that differ from each other along these axes alone, e.g. "tp" or "dp-cp", in groups:
  /// those of a group, and groups, in the order that Megatron gives them in.
  ///
  /// @throws config_error  an axis is not one
  std::vector<std::vector<std::int64_t>> groups(std::string_view axes) const;

 private:
  struct step {
    parallel_axis axis;
    std::int64_t stride;
  };
  using steps = std::vector<step>;

  static std::vector<parallel_axis> parse(std::string_view text);
  /// Of the index-th place along some axes, the first of which changes fastest: its rank.
  std::int64_t sum_of(const steps& along, std::int64_t index) const noexcept;

  axis_values sizes_;
  std::int64_t offset_;
  std::int64_t size_ = 1;
  steps steps_;  // fastest first
};

}  // namespace millrace::loader
