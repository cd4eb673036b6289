// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <utility>

#include <millrace/error.hpp>
#include <millrace/loader/cuda/detail/slot_store.hpp>
#include <millrace/loader/detail/batch/slot_ring.hpp>

namespace millrace::loader::cuda::detail {

/// What batches need that outlive their pipe. The last of them to go destroys it, on any thread.
struct pipe_state {
  template <class... Arguments>
  explicit pipe_state(std::size_t slots, const Arguments&... arguments)
      : store(arguments..., slots), ring(slots, [this](std::size_t i) { return store.slot(i); }) {}

  /// The consumer has done with a slot, as far as it has put on `on` by now. On any thread, whose
  /// current device may be another: the default stream is that of the pipe's device.
  void release(device_slot* slot, stream on) noexcept {
    if (store.on_device()) {
      try {
        const device_scope scope(store.api(), store.device());
        record(store.api(), slot->released, on);
      } catch (...) {
        // The slot stays out; and since memory must not end under the consumer, it is waited for.
        fail(std::current_exception());
        try {
          const device_scope scope(store.api(), store.device());
          drain(store.api(), on);
        } catch (const error&) {  // the first error is the one to tell
        }
        return;
      }
    }
    ring.release(slot);
  }

  /// Nothing comes any more, for a reason that no other call could tell.
  void fail(std::exception_ptr why) noexcept {
    {
      const std::scoped_lock lock(mutex);
      if (failure == nullptr) failure = std::move(why);
    }
    ring.close();
  }

  /// What `fail` was told, or null.
  std::exception_ptr why_failed() {
    const std::scoped_lock lock(mutex);
    return failure;
  }

  slot_store store;
  slot_ring<device_slot> ring;
  std::mutex mutex;  // guards failure
  std::exception_ptr failure;
};

/// A slot that somebody uses; its end is the release.
class held_slot {
 public:
  held_slot(std::shared_ptr<pipe_state> state, device_slot* slot, stream on) noexcept
      : state_(std::move(state)), slot_(slot), on_(on) {}
  held_slot(const held_slot&) = delete;
  held_slot& operator=(const held_slot&) = delete;
  ~held_slot() { state_->release(slot_, on_); }

  const device_slot& slot() const noexcept { return *slot_; }
  bool on_device() const noexcept { return state_->store.on_device(); }

 private:
  std::shared_ptr<pipe_state> state_;
  device_slot* slot_;
  stream on_;
};

}  // namespace millrace::loader::cuda::detail
