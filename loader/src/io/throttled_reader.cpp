// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/throttled_reader.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/io/reader_report.hpp>

namespace millrace::loader {

MILLRACE_INLINE throttled_reader::throttled_reader(std::unique_ptr<range_reader> reader,
                                                   const throttle& storage)
    : reader_(std::move(reader)), storage_(storage), random_(storage.seed) {
  if (storage.latency.count() < 0 || storage.jitter.count() < 0 ||
      !(storage.bytes_per_second >= 0)) {
    throw config_error("the simulated storage has " + std::to_string(storage.latency.count()) +
                       " us latency, " + std::to_string(storage.jitter.count()) + " us jitter, " +
                       std::to_string(storage.bytes_per_second) +
                       " bytes per second: expected 0 or more");
  }
}

MILLRACE_INLINE throttled_reader::clock::time_point throttled_reader::arrival_of(
    const file_range& range, clock::time_point now) {
  if (range.bytes == 0) return now;
  line_free_ = std::max(line_free_, now);
  if (storage_.bytes_per_second > 0) {
    const std::chrono::duration<double> took(static_cast<double>(range.bytes) /
                                             storage_.bytes_per_second);
    line_free_ += std::chrono::duration_cast<clock::duration>(took);
  }
  const auto most = static_cast<std::uint64_t>(storage_.jitter.count());
  const std::chrono::microseconds jitter(most == 0 ? 0 : random_() % (most + 1));
  return line_free_ + storage_.latency + jitter;
}

MILLRACE_INLINE void throttled_reader::prefetch(std::span<const file_range> ranges) noexcept try {
  reader_->prefetch(ranges);
  if (!storage_.sees_prefetch) return;
  const auto now = clock::now();
  for (const file_range& range : ranges) {
    if (announced_.size() >= most_announced) announced_.erase(announced_.begin());
    announced_.emplace(key_of(range), arrival_of(range, now));
  }
} catch (...) {  // NOLINT(bugprone-empty-catch): no memory: the transfer has not started yet
}

MILLRACE_INLINE void throttled_reader::gather(std::span<const read_request> requests) {
  const auto now = clock::now();
  auto arrived = now;
  for (const read_request& request : requests) {
    const auto known = announced_.find(key_of(request.from));
    if (known == announced_.end()) {
      arrived = std::max(arrived, arrival_of(request.from, now));
    } else {
      arrived = std::max(arrived, known->second);
      announced_.erase(known);
    }
  }
  reader_->gather(requests);
  wait_until(arrived);
}

// Waits until `when`, accurate to a few microseconds. Sleeping alone would end too late.
MILLRACE_INLINE void throttled_reader::wait_until(clock::time_point when) {
  constexpr std::chrono::microseconds margin(150);
  if (clock::now() + margin < when) std::this_thread::sleep_until(when - margin);
  while (clock::now() < when) std::this_thread::yield();
}

MILLRACE_INLINE reader_report throttled_reader::report() const {
  reader_report report = reader_->report();
  std::string what = std::to_string(storage_.latency.count()) + " us latency, up to " +
                     std::to_string(storage_.jitter.count()) + " us jitter (seed " +
                     std::to_string(storage_.seed) + ")";
  if (storage_.bytes_per_second > 0) {
    what += ", " + std::to_string(storage_.bytes_per_second / 1e6) + " MB/s";
  }
  report.grants.push_back(
      {"simulated storage of " + what, "yes", "the reader waits as such a storage would"});
  return report;
}

}  // namespace millrace::loader
