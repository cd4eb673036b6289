// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <millrace/loader/detail/telemetry/duration_histogram.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>

namespace millrace::loader {

/// Records how long each recent micro-batch spent in each stage. This shows why the caller had to
/// wait for a micro-batch.
///
/// A stall is a wait of the caller for a batch that was not ready. Its cause is whatever took
/// longest for that batch: storage, plan and gather together, copy, or the wait for a slot that the
/// caller held. A long wait for a slot also delays later batches, at most as many as there are
/// slots. So it may cause several stalls. After each of them, the stall's duration is subtracted
/// from the wait, and only the remainder counts for the next stall.
///
/// Each producer calls `begin` and `add` for its own batches. The consumer calls `cause_of`. The
/// ring that hands over a batch also synchronizes the producer's writes with the consumer's reads.
class batch_times {
 public:
  /// @param slots  number of slots of the ring, which is the maximum number of batches in progress
  explicit batch_times(std::int64_t slots)
      : slots_(slots),
        mask_(std::bit_ceil(static_cast<std::size_t>(std::max<std::int64_t>(64, 4 * slots))) - 1),
        records_(std::make_unique<record[]>(mask_ + 1)) {}

  /// A producer's last long wait for a slot that the caller held.
  struct held {
    std::int64_t from = 0;  ///< the micro-batch that waited for the slot
    std::int64_t ns = 0;    ///< length of the wait
  };

  /// Producer: starts a micro-batch after a wait for a slot.
  /// @param last  input and output: this producer's last long wait; pass the same object to each
  ///              call
  void begin(std::int64_t micro_batch, std::int64_t slot_wait_ns, held& last) noexcept {
    record& r = at(micro_batch);
    for (counter& ns : r.stage_ns) ns.set(0);
    // If the caller releases several slots together, only the first batch that needs one of them
    // shows a long wait. But that wait delayed the other batches too.
    if (micro_batch >= last.from + slots_ || slot_wait_ns >= last.ns / 2) {
      last = {micro_batch, slot_wait_ns};
    }
    r.held_from.set(last.from);
    r.held_ns.set(last.ns);
  }

  /// Producer: adds time to a stage of a micro-batch. For each stage, only one thread at a time may
  /// call this.
  void add(loader_stage stage, std::int64_t micro_batch, std::int64_t ns) noexcept {
    at(micro_batch).stage_ns[static_cast<std::size_t>(stage)].add(ns);
  }

  /// Consumer: returns the cause of a stall at a micro-batch. Call this exactly once per stall.
  stall_cause cause_of(std::int64_t micro_batch, std::int64_t stall_ns) noexcept {
    const record& r = at(micro_batch);
    if (r.held_from.value() != explained_from_) {
      explained_from_ = r.held_from.value();
      explained_ns_ = 0;
    }
    const auto spent = [&](loader_stage s) {
      return r.stage_ns[static_cast<std::size_t>(s)].value();
    };
    // In the order of `stall_cause`. If several times are equal, the first one wins.
    const std::array<std::int64_t, 4> took = {
        spent(loader_stage::storage), spent(loader_stage::plan) + spent(loader_stage::gather),
        spent(loader_stage::copy), r.held_ns.value() - explained_ns_};
    const auto cause = static_cast<stall_cause>(std::ranges::max_element(took) - took.begin());
    if (cause == stall_cause::consumer) explained_ns_ += stall_ns;
    return cause;
  }

 private:
  struct record {
    std::array<counter, loader_stage_names.size()> stage_ns;
    counter held_from;  // the batch whose wait for a slot delayed this batch
    counter held_ns;
  };

  record& at(std::int64_t micro_batch) noexcept {
    return records_[static_cast<std::size_t>(micro_batch) & mask_];
  }

  std::int64_t slots_;
  std::size_t mask_;
  std::unique_ptr<record[]> records_;
  std::int64_t explained_from_ = -1;  // used by the consumer
  std::int64_t explained_ns_ = 0;
};

}  // namespace millrace::loader
