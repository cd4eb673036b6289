// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
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
/// filled, or ready. The consumer waits while the slot of the next ticket is not ready. Slots are
/// made once and never move. Nothing allocates after the constructor.
template <class Slot>
class slot_ring {
 public:
  /// A slot to fill, and its ticket. The slot is null if no more slots are wanted.
  struct claim {
    Slot* slot = nullptr;
    std::int64_t ticket = 0;
  };

  /// @param make   called with 0 to slots - 1, on the calling thread
  /// @param ahead  most slots that are being filled or ready at a time, 1 or more; the others are
  ///               for the consumer to hold
  template <class Make>
  slot_ring(std::size_t slots, Make make, slot_reuse reuse = slot_reuse::newest,
            std::int64_t ahead = std::numeric_limits<std::int64_t>::max());

  std::size_t size() const noexcept { return slots_.size(); }

  /// Producer: waits for a slot to fill. Returns a null slot after the consumer closed the ring, or
  /// a producer finished it.
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

  const home_process home_;
  std::deque<Slot> slots_;  // a deque, because its elements never move

  mutable std::mutex mutex_;  // guards all below
  // One per side, so that a release does not wake a consumer that waits for a filled slot.
  // Notified under the lock, because a thread that sees the change may destroy the ring.
  std::condition_variable freed_;  // producers wait on it
  std::condition_variable due_;    // the consumer waits on it
  const slot_reuse reuse_;
  const std::int64_t ahead_;
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
template <class Make>
slot_ring<Slot>::slot_ring(std::size_t slots, Make make, slot_reuse reuse, std::int64_t ahead)
    : reuse_(reuse), ahead_(ahead), filled_(slots) {
  assert(ahead >= 1);
  free_.reserve(slots);
  for (std::size_t i = 0; i < slots; ++i) slots_.push_back(make(i));
  // So that the slots are first used in the order in which they were made.
  for (std::size_t i = slots; i-- > 0;) {
    free_.insert(reuse_ == slot_reuse::newest ? free_.end() : free_.begin(), &slots_[i]);
  }
}

template <class Slot>
typename slot_ring<Slot>::claim slot_ring<Slot>::acquire_free() {
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [&] { return over() || (!free_.empty() && tickets_ - next_ < ahead_); });
  if (over()) return {};
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
  freed_.notify_one();  // one slot less is ahead
  return taken;
}

template <class Slot>
void slot_ring<Slot>::release(Slot* slot) noexcept {
  if (!home_.is_here()) return;
  const std::scoped_lock lock(mutex_);
  assert(held_ > 0);
  --held_;
  free_.push_back(slot);  // within the reserved capacity
  freed_.notify_one();
}

template <class Slot>
void slot_ring<Slot>::close() noexcept {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  freed_.notify_all();
  due_.notify_one();
}

}  // namespace millrace::loader
