// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <mutex>
#include <utility>
#include <vector>

namespace millrace::loader {

/// A fixed number of slots that go round between one producer and one consumer:
///
///   free --acquire_free--> being filled --publish--> ready --take--> held --release--> free
///
/// The producer waits while no slot is free, the consumer while none is ready; slots come out in
/// the order they went in and may be released in any order, on any thread. Slots are made once
/// and never move; after the constructor nothing allocates.
template <class Slot>
class slot_ring {
 public:
  /// @param make  called once a slot, on this thread
  template <class Make>
  slot_ring(std::size_t slots, Make make);

  std::size_t size() const noexcept { return slots_.size(); }

  /// Producer: a slot to fill, or null once the consumer closed the ring.
  Slot* acquire_free();

  /// Producer: the slot is filled.
  void publish(Slot* slot) noexcept;

  /// Producer: nothing more comes; `failure` is null at a good end. A slot that was being filled
  /// when it failed stays out of the ring.
  void finish(std::exception_ptr failure) noexcept;

  /// Consumer: whether it holds every slot, so that take() would wait until one is released.
  /// A release that happens before this call is seen by it.
  bool all_held() const;

  /// Consumer: the next filled slot; null after the last one. What the producer failed with is
  /// thrown once, in the place of the first slot that it did not fill.
  Slot* take();

  /// Anyone: a taken slot may be filled again.
  void release(Slot* slot) noexcept;

  /// Consumer: no more slots are wanted; the producer stops at its next acquire_free(), and take()
  /// gives what is ready, then null.
  void close() noexcept;

 private:
  std::deque<Slot> slots_;  // a deque, since its elements stay where they are

  mutable std::mutex mutex_;  // guards all below
  // One for each side, so that a release does not wake a consumer that waits for a filled slot.
  // Notified under the lock: who then sees the change may destroy the ring.
  std::condition_variable freed_;   // the producer waits on it
  std::condition_variable filled_;  // the consumer waits on it
  std::vector<Slot*> free_;         // the last one released is filled first: the caches know it
  std::vector<Slot*> ready_;        // of size(): used round and round, from first_ready_
  std::size_t first_ready_ = 0;
  std::size_t ready_count_ = 0;
  std::size_t held_ = 0;
  bool finished_ = false;
  bool closed_ = false;
  std::exception_ptr failure_;
};

// ---------------------------------------------------------------------------------------------

template <class Slot>
template <class Make>
slot_ring<Slot>::slot_ring(std::size_t slots, Make make) : ready_(slots) {
  free_.reserve(slots);
  for (std::size_t i = 0; i < slots; ++i) {
    slots_.push_back(make());
    free_.push_back(&slots_.back());
  }
}

template <class Slot>
Slot* slot_ring<Slot>::acquire_free() {
  std::unique_lock lock(mutex_);
  freed_.wait(lock, [&] { return closed_ || !free_.empty(); });
  if (closed_) return nullptr;
  Slot* slot = free_.back();
  free_.pop_back();
  return slot;
}

template <class Slot>
void slot_ring<Slot>::publish(Slot* slot) noexcept {
  const std::scoped_lock lock(mutex_);
  assert(!finished_ && ready_count_ < size());
  ready_[(first_ready_ + ready_count_) % size()] = slot;
  ++ready_count_;
  filled_.notify_one();
}

template <class Slot>
void slot_ring<Slot>::finish(std::exception_ptr failure) noexcept {
  const std::scoped_lock lock(mutex_);
  finished_ = true;
  failure_ = std::move(failure);
  filled_.notify_one();
}

template <class Slot>
bool slot_ring<Slot>::all_held() const {
  const std::scoped_lock lock(mutex_);
  return held_ == size();
}

template <class Slot>
Slot* slot_ring<Slot>::take() {
  std::unique_lock lock(mutex_);
  filled_.wait(lock, [&] { return ready_count_ > 0 || finished_ || closed_; });
  if (ready_count_ == 0) {
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
    return nullptr;
  }
  Slot* slot = ready_[first_ready_];
  first_ready_ = (first_ready_ + 1) % size();
  --ready_count_;
  ++held_;
  return slot;
}

template <class Slot>
void slot_ring<Slot>::release(Slot* slot) noexcept {
  const std::scoped_lock lock(mutex_);
  assert(held_ > 0);
  --held_;
  free_.push_back(slot);  // within what was reserved
  freed_.notify_one();
}

template <class Slot>
void slot_ring<Slot>::close() noexcept {
  const std::scoped_lock lock(mutex_);
  closed_ = true;
  freed_.notify_one();
  filled_.notify_one();
}

}  // namespace millrace::loader
