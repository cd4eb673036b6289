// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "blend_error.hpp"
#include "greedy_groups.hpp"

/// The inner loops of a greedy blend, for any processor.
namespace millrace::dataset::detail {

/// Some groups of a blend, packed into lanes (array entries) so that a step considers only these
/// groups.
template <std::size_t Most>
struct greedy_lanes {
  alignas(64) std::array<double, Most> weights;
  alignas(64) std::array<double, Most> counts;  ///< infinity in an empty lane
  std::array<std::uint32_t, Most> groups;
  std::size_t used = 0;

  void clear() noexcept {
    weights.fill(0.0);
    counts.fill(std::numeric_limits<double>::infinity());
    groups.fill(0);
    used = 0;
  }
};

/// Returns the factor of the weights for sample `at`: max(at, 1). So samples 0 and 1 have the same
/// factor.
inline double blend_position(std::int64_t at) noexcept {
  return std::max(static_cast<double>(at), 1.0);
}

/// Processes the lanes one by one.
struct plain_kernel {
  static constexpr std::size_t most_lanes = 40;
  using lanes = greedy_lanes<most_lanes>;
  static bool is_there() noexcept { return true; }

  /// Writes the errors of all groups at a position to `keys`.
  template <blend_rounding Rounding>
  static void errors(const greedy_groups& all, double position, double* keys) noexcept {
    for (std::size_t g = 0; g < all.size(); ++g) {
      keys[g] = blend_error<Rounding>(all.weights()[g], position, all.counts()[g]);
    }
  }

  /// Number of keys above `floor`.
  static std::size_t above(const double* keys, std::size_t size, double floor) noexcept {
    std::size_t count = 0;
    for (std::size_t g = 0; g < size; ++g) count += keys[g] > floor ? 1 : 0;
    return count;
  }

  /// Packs the groups whose keys are above `floor`; there must be at most `most_lanes` such groups.
  static void pack(const greedy_groups& all, const double* keys, double floor,
                   lanes& out) noexcept {
    out.clear();
    for (std::size_t g = 0; g < all.size(); ++g) {
      if (!(keys[g] > floor)) continue;
      out.weights[out.used] = all.weights()[g];
      out.counts[out.used] = all.counts()[g];
      out.groups[out.used++] = static_cast<std::uint32_t>(g);
    }
  }

  /// Serves samples [at, end) from the lanes while the largest error is above `floor`.
  /// @return the first sample that was not served
  template <blend_rounding Rounding>
  static std::int64_t steps(lanes& some, greedy_groups& all, blend_index_span out, std::int64_t at,
                            std::int64_t end, double floor) noexcept {
    for (; at < end; ++at) {
      const double position = blend_position(at);
      double best = floor;
      std::size_t winner = most_lanes;
      for (std::size_t lane = 0; lane < some.used; ++lane) {
        const double error = blend_error<Rounding>(some.weights[lane], position, some.counts[lane]);
        if (error < best || (error == best && winner == most_lanes)) continue;
        if (error == best && all.next_of(some.groups[winner]) < all.next_of(some.groups[lane])) {
          continue;
        }
        best = error;
        winner = lane;
      }
      if (winner == most_lanes) return at;
      const std::size_t group = some.groups[winner];
      if (all.take(group, at, out)) some.counts[winner] = all.counts()[group];
    }
    return at;
  }
};

}  // namespace millrace::dataset::detail
