// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include <millrace/loader/detail/telemetry/batch_times.hpp>
#include <millrace/loader/detail/telemetry/block_probe.hpp>
#include <millrace/loader/detail/telemetry/duration_histogram.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>
#include <millrace/loader/detail/telemetry/trace_ring.hpp>

namespace millrace::loader {

/// Records the times of one thread that makes batches or copies them to a device. `telemetry` owns
/// the log (`telemetry::producer`) and includes it in reports. One thread at a time may write; any
/// thread may read.
class producer_log {
 public:
  producer_log(std::uint8_t number, thread_usage (*usage)() noexcept, batch_times& times,
               trace_ring& trace) noexcept
      : number_(number), times_(times), trace_(trace), probe_(usage) {}

  producer_log(const producer_log&) = delete;
  producer_log& operator=(const producer_log&) = delete;

  /// Starts a micro-batch. The producer waited for its slot from `begin_ns` to `end_ns`.
  void slot_wait(std::int64_t micro_batch, std::int64_t begin_ns, std::int64_t end_ns) noexcept {
    const std::int64_t ns = end_ns - begin_ns;
    probe_.waited(ns);
    slot_waits_.add(ns);
    times_.begin(micro_batch, ns, held_);
    trace_.record({trace_kind::slot_wait, number_, micro_batch, begin_ns, end_ns});
  }

  /// Records a stage of a micro-batch, or a part of a stage.
  void stage(loader_stage which, std::int64_t micro_batch, std::int64_t begin_ns,
             std::int64_t end_ns) noexcept {
    const std::int64_t ns = end_ns - begin_ns;
    stages_[static_cast<std::size_t>(which)].add(ns);
    times_.add(which, micro_batch, ns);
    trace_.record({static_cast<trace_kind>(which), number_, micro_batch, begin_ns, end_ns});
  }

  /// Records that this thread read data files into the slot. The time counts as `storage` if the
  /// thread had to wait, else as `gather`.
  void read(std::int64_t micro_batch, std::int64_t begin_ns, std::int64_t end_ns,
            std::int64_t bytes) noexcept {
    bytes_.add(bytes);
    const bool blocked = probe_.blocked(end_ns - begin_ns, bytes);
    stage(blocked ? loader_stage::storage : loader_stage::gather, micro_batch, begin_ns, end_ns);
  }

  /// Counts the bytes of a read that was recorded with `stage`. Reads recorded with `read` are
  /// counted already.
  void bytes_read(std::int64_t bytes) noexcept { bytes_.add(bytes); }

  const duration_histogram& stage_times(std::size_t stage) const noexcept { return stages_[stage]; }
  const duration_histogram& slot_waits() const noexcept { return slot_waits_; }
  std::int64_t bytes() const noexcept { return bytes_.value(); }
  std::int64_t faults() const noexcept { return probe_.faults(); }

 private:
  std::uint8_t number_;
  batch_times& times_;
  trace_ring& trace_;
  batch_times::held held_;
  block_probe probe_;
  duration_histogram slot_waits_;
  std::array<duration_histogram, loader_stage_names.size()> stages_;
  counter bytes_;
};

}  // namespace millrace::loader
