// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <span>
#include <tuple>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/io/reader_report.hpp>

namespace millrace::loader {

/// Model of the storage to simulate.
struct throttle {
  std::chrono::microseconds latency{0};  ///< per request, even if many are in flight
  std::chrono::microseconds jitter{0};   ///< added to `latency`, uniform from 0 to this
  double bytes_per_second = 0;           ///< total over all requests; 0: no limit
  std::uint64_t seed = 1;                ///< seed of the jitter
  /// If true, a prefetched range starts to transfer when `prefetch` is called. If false, each
  /// gather takes its full time.
  bool sees_prefetch = true;
};

/// Wraps another reader and delays its results until the modeled storage would have delivered them.
/// For simulations and tests on machines without slow storage, or without storage of known speed.
///
/// The model: all requests share one link, which transfers them one after another. A request
/// completes when its last byte has passed the link, plus latency and jitter. So n requests of b
/// bytes issued at once take latency + n * b / bytes_per_second, not n times the latency: the queue
/// is unbounded. Equal seeds and equal calls give equal waits. The time that the wrapped reader
/// takes counts as part of the wait.
class MILLRACE_EXPORT throttled_reader final : public range_reader {
 public:
  /// @throws config_error  a number is negative.
  throttled_reader(std::unique_ptr<range_reader> reader, const throttle& storage);

  void prefetch(std::span<const file_range> ranges) noexcept override;
  void gather(std::span<const read_request> requests) override;
  reader_report report() const override;

 private:
  using clock = std::chrono::steady_clock;
  using range_key = std::tuple<std::int64_t, std::uint64_t, std::uint64_t>;
  static constexpr std::size_t most_announced = 1 << 16;  // bounds ranges that nobody gathers

  static range_key key_of(const file_range& r) noexcept { return {r.file, r.offset, r.bytes}; }
  clock::time_point arrival_of(const file_range& range, clock::time_point now);
  static void wait_until(clock::time_point when);

  std::unique_ptr<range_reader> reader_;
  throttle storage_;
  std::mt19937_64 random_;
  clock::time_point line_free_{};
  std::multimap<range_key, clock::time_point> announced_;
};

}  // namespace millrace::loader
