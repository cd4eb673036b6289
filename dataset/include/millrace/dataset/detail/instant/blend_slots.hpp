// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// A sample of a blend: `source` is an index into the weights, `k` an index into the samples of
/// that source.
struct blend_place {
  std::int64_t source = 0;
  std::int64_t k = 0;

  friend bool operator==(const blend_place&, const blend_place&) = default;
};

/// An endless, stateless blend of sources by weight. Maps a position to a pair (source, k), and
/// back, with one table lookup.
///
/// The blend repeats after a period of P positions. Each position of the period is a slot, and a
/// source gets `slots(source)` of them. P is a power of two from 2^16 to 2^22. It is above 2^16
/// only if a source would otherwise get fewer than 32 slots. With at least 32 slots, rounding
/// changes a source's share by at most 1/64 of that share.
///
/// Slots are placed by Tijdeman's rule (The chairman assignment problem, Discrete Mathematics 32,
/// 1980). It spreads the slots of each source evenly: for every m, a source has m * slots(source) /
/// P of the first m slots, with an error below one slot. Exact numbers:
/// formats/spec/instant_order.md, section 5.
///
/// Memory: 12 bytes per position of the period. This is usually 0.75 MiB, and at most 48 MiB.
/// Thread-safe.
class MILLRACE_EXPORT blend_slots {
 public:
  static constexpr int least_period_bits = 16;
  static constexpr int most_period_bits = 22;
  static constexpr std::int64_t wanted_slots = 32;
  static constexpr std::size_t most_sources = std::size_t{1} << 16;

  /// @param weights  one per source; only their ratios matter
  /// @throws config_error  there are no weights or more than 65,536; a weight is not above zero or
  ///                       not finite; or a weight is too small, relative to the others, to get a
  ///                       slot. The message names the weight by its index, counted from 0.
  explicit blend_slots(std::span<const double> weights);

  std::int64_t source_count() const noexcept { return static_cast<std::int64_t>(counts_.size()); }
  std::int64_t period() const noexcept { return std::int64_t{1} << period_bits_; }
  /// Number of whole periods among the first `positions` positions. Uses a shift, not a division.
  /// @pre 0 <= positions
  std::int64_t periods_in(std::int64_t positions) const noexcept {
    return positions >> period_bits_;
  }

  /// Number of slots that the source has in one period.
  /// @pre 0 <= source < source_count()
  std::int64_t slots(std::int64_t source) const noexcept { return counts_[index(source)]; }

  /// @pre 0 <= position
  blend_place at(std::int64_t position) const noexcept {
    assert(0 <= position);
    if (counts_.size() == 1) return {0, position};
    const slot& here = slots_[index(position & (period() - 1))];
    return {here.source, (position >> period_bits_) * counts_[here.source] + here.k};
  }

  /// The inverse of `at`.
  /// @pre 0 <= source < source_count(), 0 <= k, and the result is below 2^63
  std::int64_t position_of(blend_place place) const noexcept {
    if (counts_.size() == 1) return place.k;
    const std::int64_t count = slots(place.source);
    return (place.k / count << period_bits_) +
           positions_[index(firsts_[index(place.source)] + place.k % count)];
  }

  /// Number of positions that belong to `source` among the first `positions` positions.
  /// @pre 0 <= source < source_count(), 0 <= positions
  std::int64_t taken(std::int64_t source, std::int64_t positions) const noexcept;

 private:
  struct slot {
    std::uint16_t source;
    std::uint32_t k;
  };

  static std::size_t index(std::int64_t i) noexcept { return static_cast<std::size_t>(i); }
  void lay();

  int period_bits_ = 0;
  std::vector<std::int64_t> counts_;      // [source], slots in a period; their sum is the period
  std::vector<std::int64_t> firsts_;      // [source], index in positions_ of its first slot
  std::vector<slot> slots_;               // [position in the period]; empty for one source
  std::vector<std::uint32_t> positions_;  // slots of source 0 in order, then slots of source 1, ...
};

}  // namespace millrace::dataset
