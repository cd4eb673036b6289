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

/// A storage to imitate.
struct throttle {
  std::chrono::microseconds latency{0};  ///< of each request, however many there are at once
  std::chrono::microseconds jitter{0};   ///< beside it, evenly from 0 up to this
  double bytes_per_second = 0;           ///< of all requests together; 0: no limit
  std::uint64_t seed = 1;                ///< of the jitter
  /// Whether a range that was announced is under way from then on. Without, each gather takes
  /// all of its time.
  bool sees_prefetch = true;
};

/// Gives what another reader gives, no sooner than the storage would: for simulations and tests,
/// where there is none that is slow, or none that is slow in a way that is known.
///
/// The model: bytes go over one line, one request behind another; a request has arrived when its
/// last byte went over the line, plus latency and jitter. So n requests of b bytes, asked for at
/// once, take latency + n * b / bytes_per_second and not n times the latency: a queue without an
/// end. Equal seeds and equal calls have equal waits. What the other reader takes itself comes
/// first, and counts as part of the wait.
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
  static constexpr std::size_t most_announced = 1 << 16;  // forgotten ranges must not pile up

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
