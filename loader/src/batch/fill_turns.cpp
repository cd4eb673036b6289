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
      if (planner_ == worker) pass_on_planning(worker);
      std::swap(out, mine.due.front());
      keep_spare(std::move(mine.due.front()));
      mine.due.pop_front();
      out.ahead.clear();
      std::swap(out.ahead, mine.told);
      return true;
    }
    if (is_over_) return false;
    if (planner_ == nobody) planner_ = worker;
    if (planner_ != worker) {
      mine.is_idle = true;
      mine.called.wait(lock);
      mine.is_idle = false;
      continue;
    }
    // Unlocks the mutex, because the wait for a slot may be long and other workers can take their
    // turns in the meantime.
    lock.unlock();
    const ring::claim claim = slots_->acquire_free();
    lock.lock();
    plan_one(claim);
  }
}

MILLRACE_INLINE void fill_turns::plan_one(const ring::claim& claim) {
  if (claim.slot == nullptr) {
    end_turns();
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
      desk& to = desks_[static_cast<std::size_t>(claim.ticket) % desks_.size()];
      to.due.push_back(std::move(turn));
      if (to.is_idle) to.called.notify_one();
      return;
    }
  } catch (...) {
    failure = std::current_exception();
  }
  slots_->finish(claim.ticket, std::move(failure));
  end_turns();
}

// Calls the next idle worker in order of turns, because the next batch is probably its own.
MILLRACE_INLINE void fill_turns::pass_on_planning(std::size_t worker) {
  planner_ = nobody;
  for (std::size_t i = 1; i < desks_.size() && planner_ == nobody; ++i) {
    const std::size_t next = (worker + i) % desks_.size();
    if (!desks_[next].is_idle || !desks_[next].due.empty()) continue;
    planner_ = next;
    desks_[next].called.notify_one();
  }
}

MILLRACE_INLINE void fill_turns::end_turns() noexcept {
  is_over_ = true;
  for (desk& each : desks_) each.called.notify_one();
}

}  // namespace millrace::loader::detail
