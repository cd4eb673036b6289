// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

#include <millrace/loader/detail/telemetry/counter.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>

namespace millrace::loader {

/// How long each of the last micro-batches spent in which stage, and so why its caller waited.
///
/// A stall is named after what took longest of its batch: storage, gather (with plan), copy, or
/// waiting for a slot, which the caller held. A long wait for a slot also delays the batches right
/// behind its own, as many as there are slots, until stalls as long have been named after it.
///
/// Producers call `begin` and `add`, each of its own batches, the consumer `cause_of`; what they
/// share is ordered by the ring that hands the batch over.
class batch_times {
 public:
  /// @param slots  of the ring: batches that may be under way at one time
  explicit batch_times(std::int64_t slots)
      : slots_(slots),
        mask_(std::bit_ceil(static_cast<std::size_t>(std::max<std::int64_t>(64, 4 * slots))) - 1),
        records_(std::make_unique<record[]>(mask_ + 1)) {}

  /// How long a producer was last kept from working as the caller held the slots.
  struct held {
    std::int64_t from = 0;  ///< the micro-batch that it waited with
    std::int64_t ns = 0;
  };

  /// Producer: work on a micro-batch begins, after so long a wait for its slot. What it was kept
  /// from by earlier ones is in `last`, which is its own.
  void begin(std::int64_t micro_batch, std::int64_t slot_wait_ns, held& last) noexcept {
    record& r = at(micro_batch);
    for (counter& ns : r.stage_ns) ns.set(0);
    // Where slots come back together, those behind the first are had at once, or nearly.
    if (micro_batch >= last.from + slots_ || slot_wait_ns >= last.ns / 2) {
      last = {micro_batch, slot_wait_ns};
    }
    r.held_from.set(last.from);
    r.held_ns.set(last.ns);
  }

  /// Producer, each stage one thread at a time.
  void add(loader_stage stage, std::int64_t micro_batch, std::int64_t ns) noexcept {
    at(micro_batch).stage_ns[static_cast<std::size_t>(stage)].add(ns);
  }

  /// Consumer: why it waited so long for a micro-batch. Once a stall.
  stall_cause cause_of(std::int64_t micro_batch, std::int64_t stall_ns) noexcept {
    const record& r = at(micro_batch);
    if (r.held_from.value() != explained_from_) {
      explained_from_ = r.held_from.value();
      explained_ns_ = 0;
    }
    const auto spent = [&](loader_stage s) {
      return r.stage_ns[static_cast<std::size_t>(s)].value();
    };
    // In the order of stall_cause; of equals the first.
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
    counter held_from;  // the batch whose wait for a slot this one is delayed by
    counter held_ns;
  };

  record& at(std::int64_t micro_batch) noexcept {
    return records_[static_cast<std::size_t>(micro_batch) & mask_];
  }

  std::int64_t slots_;
  std::size_t mask_;
  std::unique_ptr<record[]> records_;
  std::int64_t explained_from_ = -1;  // the consumer's
  std::int64_t explained_ns_ = 0;
};

}  // namespace millrace::loader
