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

/// Selects the next slot to fill if several slots are free.
enum class slot_reuse : std::uint8_t {
  newest,  ///< the slot released last: its memory is still in the CPU's caches
  oldest,  ///< the slot released first: for slots that may still be in use after their release
};

/// A fixed number of slots that circulate between producers and one consumer:
///
///   free --acquire_free--> being filled --publish--> ready --take--> held --release--> free
///
/// A producer gets a ticket with its slot: 0, 1, 2, ... The consumer takes slots in ticket order,
/// even if a later slot is filled first. It may release them in any order, on any thread. A
/// producer waits while no slot is free. It also waits while `ahead` slots are being filled or are
/// ready. The consumer waits while the slot of the next ticket is not ready.
///
/// Slots never move. The constructor makes the first slots. A producer makes another slot only if
/// no slot is free. So the ring needs no memory for slots that the consumer could hold but does not
/// hold.
template <class Slot>
class slot_ring {
 public:
  /// A slot to fill, and its ticket. The slot is null if the ring is closed or finished.
  struct claim {
    Slot* slot = nullptr;
    std::int64_t ticket = 0;
  };

  using make_function = std::function<Slot(std::size_t)>;

  /// @param slots     maximum number of slots
  /// @param make      makes slot i, from 0 to slots - 1. The constructor calls it for the first
  ///                  slots; producers call it on their threads for the others
  /// @param ahead     maximum number of slots that are being filled or ready at a time, 1 or more;
  ///                  the other slots are for the consumer to hold
  /// @param at_first  number of slots that the constructor makes
  slot_ring(std::size_t slots, make_function make, slot_reuse reuse = slot_reuse::newest,
            std::int64_t ahead = std::numeric_limits<std::int64_t>::max(),
            std::size_t at_first = std::numeric_limits<std::size_t>::max());

  /// Maximum number of slots.
  std::size_t size() const noexcept { return filled_.size(); }
  /// Number of slots made so far.
  std::size_t made() const;

  /// Producer: waits for a slot to fill. Returns a null slot after the consumer has closed the ring
  /// or a producer has finished it. If making a slot fails, the ring is finished with that failure.
  claim acquire_free();

  /// Producer: passes a filled slot on to the consumer.
  void publish(const claim& filled) noexcept;

  /// Producer: ends the ring. `ticket` and all later tickets will not be filled. `failure` is null
  /// at the regular end. If there are several calls, the call with the smallest ticket counts. A
  /// slot that could not be filled never returns to the ring.
  void finish(std::int64_t ticket, std::exception_ptr failure) noexcept;

  /// Consumer: true if the consumer holds every slot, so that take() would wait for a release.
  /// Every release that happened before the call counts.
  bool all_held() const;

  /// Consumer: the number of consecutive tickets whose slots are ready, starting at the next
  /// ticket.
  std::size_t ready() const;

  /// Consumer: waits until take() would return without waiting. Returns false if the deadline
  /// passes first.
  bool wait_until(std::chrono::steady_clock::time_point deadline);

  /// Consumer: waits for the next filled slot and returns it; returns null after the last slot.
  /// Throws a producer's failure once, instead of returning the first slot that was not filled.
  Slot* take();

  /// Any thread: returns a taken slot, to be filled again. Does nothing in a forked process, where
  /// another thread's lock may never be released.
  void release(Slot* slot) noexcept;

  /// Consumer: closes the ring. Producers stop at their next acquire_free(). take() returns the
  /// slots that are ready, then null.
  void close() noexcept;

 private:
  static constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();

  Slot*& place_of(std::int64_t ticket) noexcept {
    return filled_[static_cast<std::size_t>(ticket) % filled_.size()];
  }
  // The caller of the following functions holds the lock.

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

  mutable std::mutex mutex_;  // guards all members below
  // Producers and the consumer have separate condition variables, so that a release does not wake a
  // consumer that waits for a filled slot. Both are notified under the lock, because a thread that
  // sees the change may destroy the ring.
  std::condition_variable freed_;  // producers wait on it
  std::condition_variable due_;    // the consumer waits on it
  const slot_reuse reuse_;
  const std::int64_t ahead_;
  std::deque<Slot> slots_;   // a deque, because its elements never move
  std::size_t made_ = 0;     // slots in slots_ and slots that are being made
  std::vector<Slot*> free_;  // in order of release
  // The ready slots: a circular array, indexed by ticket. Tickets in use do not collide, because
  // there are never more tickets in use than slots.
  std::vector<Slot*> filled_;
  std::int64_t tickets_ = 0;
  std::int64_t next_ = 0;     // ticket of the slot that take() returns next
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
  // Fills the list so that producers first use the slots in the order in which they were made.
  for (std::size_t i = made_; i-- > 0;) {
    free_.insert(reuse_ == slot_reuse::newest ? free_.end() : free_.begin(), &slots_[i]);
  }
}

template <class Slot>
std::size_t slot_ring<Slot>::made() const {
  const std::scoped_lock lock(mutex_);
  return slots_.size();
}

// Makes the slot without the lock, so that the consumer need not wait.
template <class Slot>
void slot_ring<Slot>::make_one(std::unique_lock<std::mutex>& lock) {
  const std::size_t number = made_++;
  lock.unlock();
  std::exception_ptr failure;
  try {
    Slot fresh = make_(number);
    lock.lock();
    slots_.push_back(std::move(fresh));
    free_.push_back(&slots_.back());  // cannot allocate: the capacity is reserved
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
  free_.erase(chosen);  // moves the pointers after it, which are few
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
  offer();  // one slot fewer is ahead of the consumer
  return taken;
}

template <class Slot>
void slot_ring<Slot>::release(Slot* slot) noexcept {
  if (!home_.is_here()) return;
  const std::scoped_lock lock(mutex_);
  assert(held_ > 0);
  --held_;
  free_.push_back(slot);  // cannot allocate: the capacity is reserved
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
