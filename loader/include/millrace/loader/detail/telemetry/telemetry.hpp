// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/telemetry/batch_times.hpp>
#include <millrace/loader/detail/telemetry/duration_histogram.hpp>
#include <millrace/loader/detail/telemetry/mixture.hpp>
#include <millrace/loader/detail/telemetry/producer_log.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>
#include <millrace/loader/detail/telemetry/telemetry_report.hpp>
#include <millrace/loader/detail/telemetry/thread_usage.hpp>
#include <millrace/loader/detail/telemetry/trace_ring.hpp>

namespace millrace::loader {

struct telemetry_options {
  std::int64_t rank = 0;
  std::int64_t slots = 4;        ///< of the ring
  std::size_t producers = 1;     ///< threads that make batches or copy them on; 255 at most
  std::size_t trace_events = 0;  ///< events kept for a trace, 40 bytes each; 0: none
  std::vector<mixture_source> mixture{};  ///< the sources of a blend, with their weights
  thread_usage (*usage)() noexcept = &usage_of_this_thread;
};

/// What a loader's time goes into: always on, a fixed amount of memory, no locks, no system calls
/// but for a rare one, and none of the clock: who reports has read it, `now_ns()`.
///
///   producer(i), for each micro-batch m of its    slot_wait, then stage or read as often as it
///   likes consumer, for each micro-batch m in order     wait, then served
///
/// Micro-batches are numbered from 0 as they are handed over. One thread calls a producer's
/// functions, one the consumer's; all may do so at one time. `report` and `trace` may be called by
/// any thread at any time. What is told of a batch before it is handed over is seen when its stall
/// is named; what comes later is counted but names no stall.
class MILLRACE_EXPORT telemetry {
 public:
  /// @throws config_error  of the mixture's weights
  explicit telemetry(telemetry_options options = {})
      : rank_(options.rank),
        slots_(options.slots),
        times_(options.slots),
        trace_(options.trace_events),
        mixture_(std::move(options.mixture)),
        occupancy_(std::make_unique<counter[]>(static_cast<std::size_t>(options.slots) + 1)) {
    for (std::size_t i = 0; i < std::min<std::size_t>(options.producers, 255); ++i) {
      producers_.emplace_back(static_cast<std::uint8_t>(i), options.usage, times_, trace_);
    }
  }

  telemetry(const telemetry&) = delete;
  telemetry& operator=(const telemetry&) = delete;

  /// @pre i < telemetry_options::producers
  producer_log& producer(std::size_t i = 0) noexcept { return producers_[i]; }

  // Consumer

  /// The caller asked for a micro-batch at `begin` and got it at `end`.
  ///
  /// @param ready  batches that were ready when it asked; with none, it is a stall
  /// @return       what the stall came of; nothing where it was none
  std::optional<stall_cause> wait(std::int64_t micro_batch, std::int64_t begin_ns,
                                  std::int64_t end_ns, std::int64_t ready) noexcept {
    const std::int64_t ns = end_ns - begin_ns;
    occupancy_[static_cast<std::size_t>(std::clamp<std::int64_t>(ready, 0, slots_))].add(1);
    std::optional<stall_cause> cause;
    if (batches_.value() == 0) {
      first_wait_.set(ns);
      first_end_.set(end_ns);
    } else {
      waits_.add(ns);
      if (ready <= 0) {
        cause = times_.cause_of(micro_batch, ns);
        stalls_[static_cast<std::size_t>(*cause)].add(1);
        stall_ns_[static_cast<std::size_t>(*cause)].add(ns);
      }
    }
    last_end_.set(end_ns);
    batches_.add(1);
    if (trace_.on()) {
      const int detail = cause ? static_cast<int>(*cause) + 1 : 0;
      trace_.record(
          {trace_kind::wait, static_cast<std::uint8_t>(detail), micro_batch, begin_ns, end_ns});
      trace_.record({trace_kind::ready, 0, ready, begin_ns, begin_ns});
    }
    return cause;
  }

  /// Samples of a source, in the order of `telemetry_options::mixture`, were in the batch.
  void served(std::size_t source, std::int64_t samples) noexcept {
    mixture_.served(source, samples);
  }

  /// The blend has other weights from the next sample on.
  /// @throws config_error  as the constructor
  void aim(std::span<const double> weights) { mixture_.aim(weights); }

  // Anyone

  telemetry_report report() const;

  /// The last events, oldest first.
  std::vector<trace_event> trace() const { return trace_.events(); }
  std::int64_t rank() const noexcept { return rank_; }

 private:
  std::int64_t rank_;
  std::int64_t slots_;
  batch_times times_;

  trace_ring trace_;
  std::deque<producer_log> producers_;  // a deque, since its elements stay where they are

  // The consumer's, on cache lines of its own.
  alignas(64) counter batches_;
  counter first_wait_;
  counter first_end_;
  counter last_end_;
  duration_histogram waits_;
  std::array<counter, stall_cause_names.size()> stalls_;
  std::array<counter, stall_cause_names.size()> stall_ns_;
  mixture mixture_;
  std::unique_ptr<counter[]> occupancy_;  // [slots + 1]
};

}  // namespace millrace::loader
