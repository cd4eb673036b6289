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
#include <millrace/loader/detail/telemetry/block_probe.hpp>
#include <millrace/loader/detail/telemetry/duration_histogram.hpp>
#include <millrace/loader/detail/telemetry/mixture.hpp>
#include <millrace/loader/detail/telemetry/producer_log.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>
#include <millrace/loader/detail/telemetry/telemetry_report.hpp>
#include <millrace/loader/detail/telemetry/trace_ring.hpp>

namespace millrace::loader {

struct telemetry_options {
  std::int64_t rank = 0;
  std::int64_t slots = 4;                 ///< number of slots of the ring
  std::size_t producers = 1;              ///< threads that make or copy batches, at most 255
  std::size_t trace_events = 0;           ///< number of trace events to keep, 40 bytes each
  std::vector<mixture_source> mixture{};  ///< the sources of a blend, with their weights
  thread_usage (*usage)() noexcept = &usage_of_this_thread;
};

/// Measures where a loader spends its time. Telemetry is always on, uses a fixed amount of memory,
/// takes no locks and rarely makes a system call. It never reads the clock: callers pass times from
/// `now_ns()`. The callers are producers and one consumer:
///
///   producer(i), for each of its micro-batches:  `slot_wait`, then any calls of `stage` and `read`
///   consumer, for each micro-batch in order:     `wait`, then `served`
///
/// Micro-batches are numbered from 0, in the order in which they are handed over. For each
/// producer, one thread at a time may call its functions; the same holds for the consumer.
/// Different producers and the consumer may run concurrently. `report` and `trace` are thread-safe.
/// The cause of a stall depends only on what producers recorded for the late batch before they
/// handed it over.
class MILLRACE_EXPORT telemetry {
 public:
  /// @throws config_error  the weights of the mixture are invalid
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

  // Only for the consumer:

  /// Records that the caller asked for a micro-batch at `begin_ns` and got it at `end_ns`.
  ///
  /// @param ready  number of batches that were ready at `begin_ns`; 0 means a stall
  /// @return       the cause of the stall; empty if there was no stall
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

  /// Counts the samples of one source in a batch.
  /// @param source  index in `telemetry_options::mixture`
  void served(std::size_t source, std::int64_t samples) noexcept {
    mixture_.served(source, samples);
  }

  /// Sets the blend's weights for the next sample and all later samples.
  /// @throws config_error  see the constructor
  void aim(std::span<const double> weights) { mixture_.aim(weights); }

  // For any thread:

  telemetry_report report() const;

  /// The most recent events, oldest first.
  std::vector<trace_event> trace() const { return trace_.events(); }
  std::int64_t rank() const noexcept { return rank_; }

 private:
  std::int64_t rank_;
  std::int64_t slots_;
  batch_times times_;

  trace_ring trace_;
  std::deque<producer_log> producers_;  // a deque, because its elements never move

  // The consumer writes the members below, while producers write the members above. So the members
  // below begin on a new cache line.
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
