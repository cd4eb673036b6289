// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/batch/batch_slot.hpp>
#include <millrace/loader/detail/batch/slot_ring.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/plan/look_ahead.hpp>

namespace millrace::loader::detail {

/// A slot to fill, and what with.
struct fill_turn {
  slot_ring<batch_slot>::claim claim;
  planned_batch batch;
  std::vector<file_range> ahead;  ///< what this worker fills later, to tell its reader of
  std::int64_t got_ns = 0;        ///< when the slot was got
};

/// Deals micro-batches to the workers that fill them: worker w of n gets those numbered w, w + n,
/// w + 2n, ... So each reader can be told of what it will read itself, which a worker that took
/// whatever comes next could not be.
///
/// Slots are claimed and batches planned in order, by whichever worker has nothing to do; what is
/// another's is laid out for it. All members but the constructor are for any thread.
class MILLRACE_EXPORT fill_turns {
 public:
  using ring = slot_ring<batch_slot>;

  /// @param slots  outlives this
  fill_turns(ring& slots, look_ahead plan, std::size_t workers)
      : slots_(&slots), plan_(std::move(plan)), desks_(workers) {}

  /// The next turn of a worker. Waits for a slot.
  ///
  /// @param out  exchanged for it: its memory is used again
  /// @return false once there is none: at the end of the run, of which the ring knows then, or when
  ///         the ring was closed or ended with a failure
  bool take(std::size_t worker, fill_turn& out);

 private:
  struct desk {
    std::deque<fill_turn> due;
    std::vector<file_range> told;  // of turns that are not due yet
  };

  void plan_one(const ring::claim& claim);

  // Without memory to keep it, another is made when one is needed.
  void keep_spare(fill_turn&& turn) noexcept try {
    spare_.push_back(std::move(turn));
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): as above
  }

  ring* slots_;
  std::mutex mutex_;  // guards all below, but for a wait for a slot
  std::condition_variable planned_;
  look_ahead plan_;
  std::vector<desk> desks_;
  std::vector<fill_turn> spare_;
  bool is_planning_ = false;
  bool is_over_ = false;
};

}  // namespace millrace::loader::detail
