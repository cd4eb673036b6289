// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/batch/fill_turns.hpp>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/telemetry/stage.hpp>

namespace millrace::loader::detail {

MILLRACE_INLINE bool fill_turns::take(std::size_t worker, fill_turn& out) {
  std::unique_lock lock(mutex_);
  desk& mine = desks_[worker];
  for (;;) {
    if (!mine.due.empty()) {
      std::swap(out, mine.due.front());
      keep_spare(std::move(mine.due.front()));
      mine.due.pop_front();
      out.ahead.clear();
      std::swap(out.ahead, mine.told);
      return true;
    }
    if (is_over_) return false;
    if (is_planning_) {
      planned_.wait(lock);
      continue;
    }
    // Unlocks the mutex, because the wait for a slot may be long and other workers can take their
    // turns in the meantime.
    is_planning_ = true;
    lock.unlock();
    const ring::claim claim = slots_->acquire_free();
    lock.lock();
    is_planning_ = false;
    plan_one(claim);
    planned_.notify_all();
  }
}

MILLRACE_INLINE void fill_turns::plan_one(const ring::claim& claim) {
  if (claim.slot == nullptr) {
    is_over_ = true;
    return;
  }
  // passed on only after the `catch` block, which shares ownership of the exception
  std::exception_ptr failure;
  try {
    fill_turn turn;
    if (!spare_.empty()) {
      turn = std::move(spare_.back());
      spare_.pop_back();
    }
    turn.claim = claim;
    turn.got_ns = now_ns();
    const auto told = [this](std::int64_t number) -> std::vector<file_range>& {
      return desks_[static_cast<std::size_t>(number) % desks_.size()].told;
    };
    if (plan_.next(turn.batch, told)) {
      desks_[static_cast<std::size_t>(claim.ticket) % desks_.size()].due.push_back(std::move(turn));
      return;
    }
  } catch (...) {
    failure = std::current_exception();
  }
  slots_->finish(claim.ticket, std::move(failure));
  is_over_ = true;
}

}  // namespace millrace::loader::detail
