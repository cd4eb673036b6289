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

/// Records how long each of the last micro-batches spent in each stage. This shows why the caller
/// had to wait for a micro-batch.
///
/// The cause of a stall (a wait for a batch that was not ready) is whatever took longest for that
/// batch: storage, gather (with plan), copy, or waiting for a slot that the caller held. A long
/// wait for a slot also delays the following batches, up to as many as there are slots. The wait is
/// no longer named as a cause once the stalls attributed to it add up to its length.
///
/// Producers call `begin` and `add`, each for its own batches; the consumer calls `cause_of`. The
/// ring that hands a batch over also orders their accesses.
class batch_times {
 public:
  /// @param slots  slots of the ring: the number of batches in progress at one time
  explicit batch_times(std::int64_t slots)
      : slots_(slots),
        mask_(std::bit_ceil(static_cast<std::size_t>(std::max<std::int64_t>(64, 4 * slots))) - 1),
        records_(std::make_unique<record[]>(mask_ + 1)) {}

  /// A producer's last long wait for a slot that the caller held.
  struct held {
    std::int64_t from = 0;  ///< the micro-batch that waited
    std::int64_t ns = 0;    ///< length of the wait
  };

  /// Producer: starts a micro-batch, after it waited for a slot.
  /// @param last  the record of this producer, which keeps its last long wait between calls
  void begin(std::int64_t micro_batch, std::int64_t slot_wait_ns, held& last) noexcept {
    record& r = at(micro_batch);
    for (counter& ns : r.stage_ns) ns.set(0);
    // If slots are released together, only the first of the batches that waited for them shows a
    // long wait. That wait delayed the other batches too.
    if (micro_batch >= last.from + slots_ || slot_wait_ns >= last.ns / 2) {
      last = {micro_batch, slot_wait_ns};
    }
    r.held_from.set(last.from);
    r.held_ns.set(last.ns);
  }

  /// Producer: adds time to a stage of a micro-batch. Only one thread at a time may call it per
  /// stage.
  void add(loader_stage stage, std::int64_t micro_batch, std::int64_t ns) noexcept {
    at(micro_batch).stage_ns[static_cast<std::size_t>(stage)].add(ns);
  }

  /// Consumer: returns why it waited for a micro-batch. Call it once per stall.
  stall_cause cause_of(std::int64_t micro_batch, std::int64_t stall_ns) noexcept {
    const record& r = at(micro_batch);
    if (r.held_from.value() != explained_from_) {
      explained_from_ = r.held_from.value();
      explained_ns_ = 0;
    }
    const auto spent = [&](loader_stage s) {
      return r.stage_ns[static_cast<std::size_t>(s)].value();
    };
    // In the order of stall_cause; the first of equal times wins.
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
    counter held_from;  // the batch whose wait for a slot delayed this one
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
