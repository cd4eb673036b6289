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

/// The properties of the storage to simulate.
struct throttle {
  std::chrono::microseconds latency{0};  ///< of each request, however many are in flight
  std::chrono::microseconds jitter{0};   ///< each request also takes a random time from 0 to this
  double bytes_per_second = 0;           ///< of all requests together; 0: no limit
  std::uint64_t seed = 1;                ///< seed of the jitter
  /// If true, the transfer of a range begins when `prefetch` announces the range. If false, it
  /// begins when `gather` requests the range.
  bool sees_prefetch = true;
};

/// Wraps another reader, and delays its results until the simulated storage would have delivered
/// them. For simulations and tests on machines that have no storage of the wanted speed.
///
/// The simulated storage has one link, which transfers all requests one after another. A request
/// completes after its last byte has passed the link and then latency and jitter have passed. Any
/// number of requests can be in flight. So without jitter, n simultaneous requests of b bytes take
/// latency + n * b / bytes_per_second in total. Equal seeds and equal calls give equal delays. The
/// time that the wrapped reader takes is part of the delay.
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
  // Upper bound on the size of `announced_`, which may contain ranges that nobody ever gathers.
  static constexpr std::size_t most_announced = 1 << 16;

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
