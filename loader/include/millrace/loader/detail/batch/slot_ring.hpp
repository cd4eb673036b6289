// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <iterator>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include <millrace/loader/detail/memory/home_process.hpp>

namespace millrace::loader {

/// Which of several free slots is filled next.
enum class slot_reuse : std::uint8_t {
  newest,  ///< the one released last: its memory is still in the CPU's caches
  oldest,  ///< the one released first: for slots whose users may still be at work when released
};

/// A fixed number of slots that circulate between producers and one consumer:
///
///   free --acquire_free--> being filled --publish--> ready --take--> held --release--> free
///
/// A producer gets a ticket with its slot: 0, 1, 2, ... The consumer takes slots in ticket order,
/// even if a later slot is filled first. It may release them in any order, on any thread. A
/// producer waits while no slot is free, or while enough slots are ahead of the consumer: being
/// filled, or ready. The consumer waits while the slot of the next ticket is not ready. Slots never
/// move. The constructor makes the first ones; a producer makes each of the others when no slot is
/// free, so that slots for the consumer to hold cost nothing until it holds them.
template <class Slot>
class slot_ring {
 public:
  /// A slot to fill, and its ticket. The slot is null if no more slots are wanted.
  struct claim {
    Slot* slot = nullptr;
    std::int64_t ticket = 0;
  };

  using make_function = std::function<Slot(std::size_t)>;

  /// @param slots     most slots
  /// @param make      makes slot i of 0 to slots - 1. Called for the first slots on this thread,
  ///                  and for the others on the producers' threads
  /// @param ahead     most slots that are being filled or ready at a time, 1 or more; the others
  ///                  are for the consumer to hold
  /// @param at_first  number of slots that the constructor makes
  slot_ring(std::size_t slots, make_function make, slot_reuse reuse = slot_reuse::newest,
            std::int64_t ahead = std::numeric_limits<std::int64_t>::max(),
            std::size_t at_first = std::numeric_limits<std::size_t>::max());

  /// Most slots.
  std::size_t size() const noexcept { return filled_.size(); }
  /// Slots made so far.
  std::size_t made() const;

  /// Producer: waits for a slot to fill. Returns a null slot after the consumer closed the ring, or
  /// a producer finished it. If a slot cannot be made, the ring is finished with that failure.
  claim acquire_free();

  /// Producer: passes a filled slot on to the consumer.
  void publish(const claim& filled) noexcept;

  /// Producer: ends the ring; this ticket and later ones will not be filled. `failure` is null at
  /// the regular end. If there are several calls, the one with the smallest ticket counts. A slot
  /// whose filling failed never returns to the ring.
  void finish(std::int64_t ticket, std::exception_ptr failure) noexcept;

  /// Consumer: true if it holds every slot, so that take() would wait until one is released. Takes
  /// into account every release that happened before the call.
  bool all_held() const;

  /// Consumer: the number of consecutive slots, from the next one, that are ready.
  std::size_t ready() const;

  /// Consumer: waits until take() would return without waiting. False if the time is up first.
  bool wait_until(std::chrono::steady_clock::time_point deadline);

  /// Consumer: waits for the next filled slot; null after the last one. Throws a producer's failure
  /// once, in place of the first slot that was not filled.
  Slot* take();

  /// Any thread: returns a taken slot, to be filled again. Does nothing in a forked process, where
  /// a lock may be held for good.
  void release(Slot* slot) noexcept;

  /// Consumer: stops requesting slots. Producers stop at their next acquire_free(); take() returns
  /// the slots that are ready, then null.
  void close() noexcept;

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  Slot*& place_of(std::int64_t ticket) noexcept {
    return filled_[static_cast<std::size_t>(ticket) % filled_.size()];
  }
  // The following functions are called with the lock.

  bool over() const noexcept { return closed_ || end_ != never; }
  bool is_ready() noexcept { return !filled_.empty() && place_of(next_) != nullptr; }
  bool is_due() noexcept { return next_ == end_ || is_ready() || closed_; }

  bool may_claim() const noexcept {
    return tickets_ - next_ < ahead_ && (!free_.empty() || made_ < filled_.size());
  }
  /// Wakes a producer if it can claim a slot. Called after each change that may allow one more
  /// claim.
  void offer() noexcept {
    if (may_claim()) freed_.notify_one();
  }
  void make_one(std::unique_lock<std::mutex>& lock);

  const home_process home_;
  const make_function make_;

  mutable std::mutex mutex_;  // guards all below
  // One per side, so that a release does not wake a consumer that waits for a filled slot.
  // Notified under the lock, because a thread that sees the change may destroy the ring.
  std::condition_variable freed_;  // producers wait on it
  std::condition_variable due_;    // the consumer waits on it
  const slot_reuse reuse_;
  const std::int64_t ahead_;
  std::deque<Slot> slots_;   // a deque, because its elements never move
  std::size_t made_ = 0;     // those in slots_, and those that are being made
  std::vector<Slot*> free_;  // in the order of their release
  // Circular, indexed by ticket. No two tickets in use collide, because there are at most as many
  // of them as slots.
  std::vector<Slot*> filled_;
  std::int64_t tickets_ = 0;
  std::int64_t next_ = 0;     // ticket that take() returns next
  std::int64_t end_ = never;  // first ticket that is never filled
  std::size_t held_ = 0;
  bool closed_ = false;
  std::exception_ptr failure_;
};

// ---------------------------------------------------------------------------------------------

template <class Slot>
slot_ring<Slot>::slot_ring(std::size_t slots, make_function make, slot_reuse reuse,
                           std::int64_t ahead, std::size_t at_first)
    : make_(std::move(make)), reuse_(reuse), ahead_(ahead), filled_(slots) {
  assert(ahead >= 1 && at_first >= 1);
  free_.reserve(slots);
  while (made_ < std::min(slots, at_first)) slots_.push_back(make_(made_++));
  // So that the slots are first used in the order in which they were made.
  for (std::size_t i = made_; i-- > 0;) {
    free_.insert(reuse_ == slot_reuse::newest ? free_.end() : free_.begin(), &slots_[i]);
  }
}

template <class Slot>
std::size_t slot_ring<Slot>::made() const {
  const std::scoped_lock lock(mutex_);
  return slots_.size();
}

// Allocates without the lock, which the consumer needs.
template <class Slot>
void slot_ring<Slot>::make_one(std::unique_lock<std::mutex>& lock) {
  const std::size_t number = made_++;
  lock.unlock();
  std::exception_ptr failure;
  try {
    Slot fresh = make_(number);
    lock.lock();
    slots_.push_back(std::move(fresh));
    free_.push_back(&slots_.back());  // within the reserved capacity
    return;
  } catch (...) {
    failure = std::current_exception();
  }
  if (!lock.owns_lock()) lock.lock();
  if (tickets_ >= end_) return;
  end_ = tickets_;
  failure_ = std::move(failure);
  freed_.notify_all();
  due_.notify_one();
}

template <class Slot>
typename slot_ring<Slot>::claim slot_ring<Slot>::acquire_free() {
  std::unique_lock lock(mutex_);
  for (;;) {
    freed_.wait(lock, [&] { return over() || may_claim(); });
    if (over()) return {};
    if (!free_.empty()) break;
    make_one(lock);  // another producer may take the new slot
  }
  const auto chosen = reuse_ == slot_reuse::newest ? std::prev(free_.end()) : free_.begin();
  Slot* const slot = *chosen;
  free_.erase(chosen);  // moves the rest, at most some pointers
  return {slot, tickets_++};
}

template <class Slot>
void slot_ring<Slot>::publish(const claim& filled) noexcept {
  const std::scoped_lock lock(mutex_);
  assert(next_ <= filled.ticket && filled.ticket < tickets_);
  place_of(filled.ticket) = filled.slot;
  if (filled.ticket == next_) due_.notify_one();
}

template <class Slot>
void slot_ring<Slot>::finish(std::int64_t ticket, std::exception_ptr failure) noexcept {
  const std::scoped_lock lock(mutex_);
  if (ticket >= end_) return;
  end_ = ticket;
  failure_ = std::move(failure);
  freed_.notify_all();
  due_.notify_one();
}

template <class Slot>
bool slot_ring<Slot>::all_held() const {
  const std::scoped_lock lock(mutex_);
  return held_ == size();
}

template <class Slot>
std::size_t slot_ring<Slot>::ready() const {
  const std::scoped_lock lock(mutex_);
  std::size_t count = 0;
  while (count < filled_.size() &&
         filled_[(static_cast<std::size_t>(next_) + count) % filled_.size()] != nullptr) {
    ++count;
  }
  return count;
}

template <class Slot>
bool slot_ring<Slot>::wait_until(std::chrono::steady_clock::time_point deadline) {
  std::unique_lock lock(mutex_);
  return due_.wait_until(lock, deadline, [&] { return is_due(); });
}

template <class Slot>
Slot* slot_ring<Slot>::take() {
  std::unique_lock lock(mutex_);
  due_.wait(lock, [&] { return is_due(); });
  if (next_ == end_ || !is_ready()) {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return nullptr;
  }
  ++held_;
  Slot* const taken = std::exchange(place_of(next_), nullptr);
  ++next_;
  offer();  // one slot less is ahead
  return taken;
}

template <class Slot>
void slot_ring<Slot>::release(Slot* slot) noexcept {
  if (!home_.is_here()) return;
  const std::scoped_lock lock(mutex_);
  assert(held_ > 0);
  --held_;
  free_.push_back(slot);  // within the reserved capacity
  offer();
}

template <class Slot>
void slot_ring<Slot>::close() noexcept {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  freed_.notify_all();
  due_.notify_one();
}

}  // namespace millrace::loader
