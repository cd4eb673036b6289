// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdint>

namespace millrace::loader {

/// A number that one thread at a time may change and any thread may read.
///
/// A change is a relaxed load and a relaxed store, which is cheaper than an atomic
/// read-modify-write. It does not order other memory accesses. If several threads take turns
/// changing the number, the caller must synchronize the turns.
class counter {
 public:
  void add(std::int64_t n) noexcept {
    value_.store(value_.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
  }
  void set(std::int64_t n) noexcept { value_.store(n, std::memory_order_relaxed); }
  void raise_to(std::int64_t n) noexcept {
    if (n > value()) set(n);
  }
  std::int64_t value() const noexcept { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::int64_t> value_ = 0;
};

/// The buckets of a histogram. The range from each power of two (in nanoseconds) to the next is
/// divided into 16 equal buckets. So the width of a bucket is at most a sixteenth of the values in
/// it. Below 16 ns, each value has its own bucket. All durations of 2^42 ns (73 minutes) or more
/// are in the last bucket.
struct duration_buckets {
  static constexpr int part_bits = 4;
  static constexpr int most_bits = 42;
  static constexpr std::size_t count = std::size_t{most_bits - part_bits + 1} << part_bits;

  /// @pre ns >= 0
  static constexpr std::size_t of(std::int64_t ns) noexcept {
    const auto value = static_cast<std::uint64_t>(ns);
    constexpr std::uint64_t parts = std::uint64_t{1} << part_bits;
    if (value < parts) return static_cast<std::size_t>(value);
    const int top = static_cast<int>(std::bit_width(value)) - 1;
    if (top >= most_bits) return count - 1;
    return (static_cast<std::size_t>(top - part_bits + 1) << part_bits) +
           static_cast<std::size_t>((value >> (top - part_bits)) & (parts - 1));
  }

  /// The largest duration of a bucket, in nanoseconds. The last bucket may contain longer
  /// durations, which this function ignores.
  static constexpr std::int64_t last_of(std::size_t bucket) noexcept {
    const auto part = static_cast<std::int64_t>(bucket & ((1U << part_bits) - 1));
    const auto octave = static_cast<int>(bucket >> part_bits);
    if (octave == 0) return part;
    return ((part + (1 << part_bits) + 1) << (octave - 1)) - 1;
  }
};

/// A snapshot of a histogram.
struct duration_counts {
  std::array<std::int64_t, duration_buckets::count> buckets{};
  std::int64_t count = 0;
  std::int64_t total_ns = 0;
  std::int64_t max_ns = 0;

  /// The q-quantile of all durations, rounded up by at most a sixteenth. The result never exceeds
  /// the largest duration. It is 0 if there are no durations.
  ///
  /// @pre 0 <= q <= 1
  std::int64_t quantile_ns(double q) const noexcept {
    assert(0 <= q && q <= 1);
    const auto wanted =
        std::max<std::int64_t>(1, std::llround(std::ceil(q * static_cast<double>(count))));
    std::int64_t seen = 0;
    for (std::size_t i = 0; i < buckets.size() && seen < count; ++i) {
      seen += buckets[i];
      if (seen < wanted) continue;
      return i + 1 == buckets.size() ? max_ns : std::min(duration_buckets::last_of(i), max_ns);
    }
    return max_ns;
  }

  /// Adds the counts of another histogram.
  void add(const duration_counts& more) noexcept {
    for (std::size_t i = 0; i < buckets.size(); ++i) buckets[i] += more.buckets[i];
    count += more.count;
    total_ns += more.total_ns;
    max_ns = std::max(max_ns, more.max_ns);
  }

  /// The exact number of durations below 2^log2 ns; for `most_bits`, the number of all durations.
  ///
  /// @pre duration_buckets::part_bits <= log2 <= duration_buckets::most_bits
  std::int64_t below_power(int log2) const noexcept {
    std::int64_t seen = 0;
    const std::size_t end = static_cast<std::size_t>(log2 - duration_buckets::part_bits + 1)
                            << duration_buckets::part_bits;
    for (std::size_t i = 0; i < std::min(end, buckets.size()); ++i) seen += buckets[i];
    return log2 >= duration_buckets::most_bits ? count : seen;
  }
};

/// Counts durations. One thread at a time may add durations; any thread may read the counts. No
/// member allocates memory.
class duration_histogram {
 public:
  /// @param ns  duration in nanoseconds; a negative value counts as 0
  void add(std::int64_t ns) noexcept {
    ns = std::max<std::int64_t>(ns, 0);
    buckets_[duration_buckets::of(ns)].add(1);
    total_.add(ns);
    most_.raise_to(ns);
  }

  /// Returns a snapshot. If another thread adds durations in the meantime, `buckets`, `total_ns`
  /// and `max_ns` may disagree about the newest durations.
  duration_counts counts() const noexcept {
    duration_counts now;
    now.total_ns = total_.value();
    for (std::size_t i = 0; i < buckets_.size(); ++i) {
      now.buckets[i] = buckets_[i].value();
      now.count += now.buckets[i];
    }
    now.max_ns = most_.value();
    return now;
  }

 private:
  std::array<counter, duration_buckets::count> buckets_;
  counter total_;
  counter most_;
};

}  // namespace millrace::loader
