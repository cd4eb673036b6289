// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <utility>

namespace millrace::dataset {

/// Searches an ascending column of a file that is too large to scan. Caches every 2^s-th entry of
/// the column when it first reads that entry. The exponent s is the smallest one that limits the
/// cache to about 8,192 entries (64 KiB).
///
/// Between two cached entries it uses interpolation search, so a search in 10^9 entries touches
/// about five pages of the file. If the column is not ascending, the result is an arbitrary entry,
/// so the caller must check it. Many threads may search at once.
class sampled_search {
 public:
  static constexpr std::int64_t most_samples = 8192;

  /// @param count  entries in the column
  /// @throws std::bad_alloc
  explicit sampled_search(std::int64_t count);

  /// Returns the index of the last entry that is at most `target`, or -1 if the first entry is
  /// already above `target`.
  ///
  /// @param value  `value(i)` returns entry i, 0 <= i < count; must always read the same column
  template <class Value>
  std::int64_t last_not_above(std::int64_t target, const Value& value) const;

 private:
  struct free_memory {
    void operator()(std::uint64_t* memory) const noexcept { std::free(memory); }
  };
  /// Entries up to `low` are at most the target; entries from `high` on are above the target.
  struct interval {
    std::int64_t low;
    std::int64_t high;
    std::int64_t value_at_low;
    std::int64_t value_at_high;
  };

  template <class Value>
  std::int64_t sample(std::int64_t j, const Value& value) const;
  template <class Value>
  static void narrow_by_proportion(interval& in, std::int64_t target, const Value& value);

  std::int64_t count_;
  int shift_ = 0;
  std::int64_t samples_ = 0;
  // met_[j] is 0 if entry j * 2^shift_ has not been read yet. Otherwise it is the value of that
  // entry plus 1. `calloc` provides the zeros without touching the memory, so unused pages cost
  // nothing.
  std::unique_ptr<std::uint64_t[], free_memory> met_;
};

// ---------------------------------------------------------------------------------------------

inline sampled_search::sampled_search(std::int64_t count) : count_(count) {
  assert(0 <= count);
  while (count >> shift_ > most_samples) ++shift_;
  samples_ = count;
  if (shift_ == 0) return;  // a column this small needs no cache
  samples_ = ((count - 1) >> shift_) + 1;
  met_.reset(static_cast<std::uint64_t*>(
      std::calloc(static_cast<std::size_t>(samples_), sizeof(std::uint64_t))));
  if (!met_) throw std::bad_alloc();
}

template <class Value>
std::int64_t sampled_search::sample(std::int64_t j, const Value& value) const {
  if (!met_) return value(j << shift_);
  // Several threads may look up the same entry; all write the same value.
  const std::atomic_ref<std::uint64_t> met(met_[static_cast<std::size_t>(j)]);
  std::uint64_t known = met.load(std::memory_order_relaxed);
  if (known == 0) {
    known = static_cast<std::uint64_t>(value(j << shift_)) + 1;
    met.store(known, std::memory_order_relaxed);
  }
  return static_cast<std::int64_t>(known - 1);
}

template <class Value>
void sampled_search::narrow_by_proportion(interval& in, std::int64_t target, const Value& value) {
  const auto size = static_cast<double>(in.high - in.low);
  const double part =
      (static_cast<double>(target) - static_cast<double>(in.value_at_low)) /
      (static_cast<double>(in.value_at_high) - static_cast<double>(in.value_at_low));
  if (!(part >= 0 && part <= 1)) return;  // the column is not ascending; also catches NaN
  const auto guess = in.low + static_cast<std::int64_t>(part * size);
  const auto margin = static_cast<std::int64_t>(4 * std::sqrt(size)) + 1;
  for (const std::int64_t probe : {guess - margin, guess + margin}) {
    if (probe <= in.low || probe >= in.high) continue;
    const std::int64_t found = value(probe);
    if (found <= target) {
      in.low = probe;
      in.value_at_low = found;
    } else {
      in.high = probe;
      in.value_at_high = found;
      return;
    }
  }
}

template <class Value>
std::int64_t sampled_search::last_not_above(std::int64_t target, const Value& value) const {
  if (samples_ == 0) return -1;
  std::int64_t low = 0;
  std::int64_t high = samples_;
  interval in{0, count_, sample(0, value), 0};
  if (in.value_at_low > target) return -1;
  bool has_high = false;
  while (high - low > 1) {
    const std::int64_t middle = low + (high - low) / 2;
    const std::int64_t found = sample(middle, value);
    if (found <= target) {
      low = middle;
      in.value_at_low = found;
    } else {
      high = middle;
      in.value_at_high = found;
      has_high = true;
    }
  }
  if (shift_ == 0) return low;
  in.low = low << shift_;
  if (has_high) in.high = high << shift_;
  while (in.high - in.low > 1) {
    // Within one or two pages, interpolation saves nothing.
    if (has_high && in.high - in.low > 512) narrow_by_proportion(in, target, value);
    if (in.high - in.low <= 1) break;
    const std::int64_t middle = in.low + (in.high - in.low) / 2;
    const std::int64_t found = value(middle);
    if (found <= target) {
      in.low = middle;
      in.value_at_low = found;
    } else {
      in.high = middle;
      in.value_at_high = found;
      has_high = true;
    }
  }
  return in.low;
}

}  // namespace millrace::dataset
