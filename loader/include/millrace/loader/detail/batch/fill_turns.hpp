// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
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

/// A slot to fill, and the batch to fill it with.
struct fill_turn {
  slot_ring<batch_slot>::claim claim;
  planned_batch batch;
  std::vector<file_range> ahead;  ///< ranges to prefetch, of this worker's later batches
  std::int64_t got_ns = 0;        ///< when the slot was acquired
};

/// Assigns micro-batches to the workers that fill them: worker w of n gets micro-batches w, w + n,
/// w + 2n, ... Because the assignment is fixed, each worker's reader can prefetch exactly what that
/// worker will read.
///
/// One worker at a time, the planner, claims slots and plans batches, in order. It queues the
/// batches that other workers will fill, and wakes those workers. When it has planned a batch of
/// its own, it makes an idle worker the planner. No other worker wakes up. All members except the
/// constructor are thread-safe.
class MILLRACE_EXPORT fill_turns {
 public:
  using ring = slot_ring<batch_slot>;

  /// @param slots  must outlive this object
  fill_turns(ring& slots, look_ahead plan, std::size_t workers)
      : slots_(&slots), plan_(std::move(plan)), desks_(workers) {}

  /// Gets the next slot and batch for a worker. Waits for a slot.
  ///
  /// @param out  receives the turn by a swap, so that the old memory of `out` is reused
  /// @return false if there are no more turns: the run has ended, which finishes the ring; or the
  ///         ring was closed; or the ring has ended with a failure
  bool take(std::size_t worker, fill_turn& out);

 private:
  struct desk {
    std::deque<fill_turn> due;
    std::vector<file_range> told;    // ranges to prefetch with the desk's next turn
    std::condition_variable called;  // its worker waits on it while `is_idle`
    bool is_idle = false;
  };

  static constexpr std::size_t nobody = std::numeric_limits<std::size_t>::max();

  // The caller of the following functions holds the lock.

  void plan_one(const ring::claim& claim);
  void pass_on_planning(std::size_t worker);
  void end_turns() noexcept;

  // Keeps a used turn, so that its memory can be reused. If this allocation fails, the turn is
  // dropped; a new turn is made when needed.
  void keep_spare(fill_turn&& turn) noexcept try {
    spare_.push_back(std::move(turn));
  } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): as above
  }

  ring* slots_;
  std::mutex mutex_;  // guards all members below; not held while waiting for a slot
  look_ahead plan_;
  std::vector<desk> desks_;
  std::vector<fill_turn> spare_;
  // The worker that plans, or is called to plan. If it is `nobody`, no worker is idle, except for
  // those that are called because they have a batch.
  std::size_t planner_ = nobody;
  bool is_over_ = false;
};

}  // namespace millrace::loader::detail
