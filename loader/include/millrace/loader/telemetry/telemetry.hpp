// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <millrace/loader/telemetry/batch_times.hpp>
#include <millrace/loader/telemetry/block_probe.hpp>
#include <millrace/loader/telemetry/clock.hpp>
#include <millrace/loader/telemetry/duration_histogram.hpp>
#include <millrace/loader/telemetry/mixture.hpp>
#include <millrace/loader/telemetry/stage.hpp>
#include <millrace/loader/telemetry/telemetry_report.hpp>
#include <millrace/loader/telemetry/trace_ring.hpp>

namespace millrace::loader {

struct telemetry_options {
  std::int64_t rank = 0;
  std::int64_t slots = 4;                 ///< of the ring
  std::size_t trace_events = 0;           ///< events kept for a trace, 40 bytes each; 0: none
  std::vector<mixture_source> mixture{};  ///< the sources of a blend, with their weights
  thread_usage (*usage)() noexcept = &usage_of_this_thread;
};

/// What a loader's time goes into: always on, a fixed amount of memory, no locks, no system calls
/// but for a rare one, and none of the clock: who reports has read it, `now_ns()`.
///
///   producer, for each micro-batch m in order    slot_wait, then stage or read as often as it
///   likes consumer, for each micro-batch m in order    wait, then served
///
/// One thread at a time calls the producer's functions, and one at a time tells of
/// `loader_stage::copy`, which may be another; one calls the consumer's. Each may call its own
/// while the others do. `report` and `trace` may be called by any thread at any time. What is told
/// of a batch before it is handed over is seen when its stall is named; what comes later is counted
/// but names no stall.
class telemetry {
 public:
  /// @throws config_error  of the mixture's weights
  explicit telemetry(telemetry_options options = {})
      : rank_(options.rank),
        slots_(options.slots),
        times_(options.slots),
        probe_(options.usage),
        mixture_(std::move(options.mixture)),
        trace_(options.trace_events),
        occupancy_(std::make_unique<counter[]>(static_cast<std::size_t>(options.slots) + 1)) {}

  telemetry(const telemetry&) = delete;
  telemetry& operator=(const telemetry&) = delete;

  // Producer

  /// A micro-batch is begun: it had to wait for its slot from `begin` to `end`.
  void slot_wait(std::int64_t micro_batch, std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    const std::int64_t ns = end_ns - begin_ns;
    probe_.waited(ns);
    slot_waits_.add(ns);
    times_.begin(micro_batch, ns);
    trace_.record({trace_kind::slot_wait, 0, micro_batch, begin_ns, end_ns});
  }

  /// A stage of a micro-batch, or a part of one.
  void stage(loader_stage which, std::int64_t micro_batch, std::int64_t begin_ns,
             std::int64_t end_ns) noexcept {
    const std::int64_t ns = end_ns - begin_ns;
    stages_[static_cast<std::size_t>(which)].add(ns);
    times_.add(which, micro_batch, ns);
    trace_.record({static_cast<trace_kind>(which), 0, micro_batch, begin_ns, end_ns});
  }

  /// Bytes of data files were brought into the slot, by this thread: a stage that is storage if the
  /// thread was kept waiting, and gather if it was not.
  void read(std::int64_t micro_batch, std::int64_t begin_ns, std::int64_t end_ns,
            std::int64_t bytes) noexcept {
    bytes_.add(bytes);
    const bool blocked = probe_.blocked(end_ns - begin_ns, bytes);
    stage(blocked ? loader_stage::storage : loader_stage::gather, micro_batch, begin_ns, end_ns);
  }

  /// Bytes that a stage told as storage or gather has brought; `read` counts its own.
  void bytes_read(std::int64_t bytes) noexcept { bytes_.add(bytes); }

  // Consumer

  /// The caller asked for a micro-batch at `begin` and got it at `end`.
  ///
  /// @param ready  batches that were ready when it asked; with none, it is a stall
  void wait(std::int64_t micro_batch, std::int64_t begin_ns, std::int64_t end_ns,
            std::int64_t ready) noexcept {
    const std::int64_t ns = end_ns - begin_ns;
    occupancy_[static_cast<std::size_t>(std::clamp<std::int64_t>(ready, 0, slots_))].add(1);
    std::uint8_t detail = 0;
    if (batches_.value() == 0) {
      first_wait_.set(ns);
      first_end_.set(end_ns);
    } else {
      waits_.add(ns);
      if (ready <= 0) {
        const auto cause = static_cast<std::size_t>(times_.cause_of(micro_batch, ns));
        stalls_[cause].add(1);
        stall_ns_[cause].add(ns);
        detail = static_cast<std::uint8_t>(cause + 1);
      }
    }
    last_end_.set(end_ns);
    batches_.add(1);
    if (!trace_.on()) return;
    trace_.record({trace_kind::wait, detail, micro_batch, begin_ns, end_ns});
    trace_.record({trace_kind::ready, 0, ready, begin_ns, begin_ns});
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

  // The producer's.
  block_probe probe_;
  duration_histogram slot_waits_;
  std::array<duration_histogram, loader_stage_names.size()> stages_;
  counter bytes_;

  // The consumer's, on cache lines of its own.
  alignas(64) counter batches_;
  counter first_wait_;
  counter first_end_;
  counter last_end_;
  duration_histogram waits_;
  std::array<counter, stall_cause_names.size()> stalls_;
  std::array<counter, stall_cause_names.size()> stall_ns_;
  mixture mixture_;
  trace_ring trace_;
  std::unique_ptr<counter[]> occupancy_;  // [slots + 1]
};

// ---------------------------------------------------------------------------------------------

inline telemetry_report telemetry::report() const {
  telemetry_report now;
  now.rank = rank_;
  now.batches = batches_.value();
  now.first_wait_ns = first_wait_.value();
  now.elapsed_ns = last_end_.value() - first_end_.value();
  now.waits = waits_.counts();
  for (std::size_t i = 0; i < now.stalls.size(); ++i) {
    now.stalls[i] = {stalls_[i].value(), stall_ns_[i].value()};
  }
  for (std::size_t i = 0; i < now.stages.size(); ++i) now.stages[i] = stages_[i].counts();
  now.slot_waits = slot_waits_.counts();
  now.slots = slots_;
  for (std::size_t i = 0; i <= static_cast<std::size_t>(slots_); ++i) {
    now.occupancy.push_back(occupancy_[i].value());
  }
  now.bytes = bytes_.value();
  now.major_faults = probe_.faults();
  now.mixture = mixture_.shares();
  return now;
}

}  // namespace millrace::loader
