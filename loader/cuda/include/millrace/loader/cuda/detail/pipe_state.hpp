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

/// The state that batches share with their pipe, and may need after the pipe is destroyed. The last
/// owner destroys it, on any thread.
struct pipe_state {
  template <class... Arguments>
  explicit pipe_state(std::size_t slots, const Arguments&... arguments)
      : store(arguments..., slots),
        ring(
            slots, [this](std::size_t i) { return store.slot(i); }, slot_reuse::oldest) {}

  /// Releases a slot after all operations that the consumer has submitted to `on` so far. May be
  /// called on any thread, with any current device: a null `on` is the default stream of the pipe's
  /// device.
  void release(device_slot* slot, stream on) noexcept {
    if (store.on_device()) {
      try {
        const device_scope scope(store.api(), store.device());
        record(store.api(), slot->released, on);
      } catch (...) {
        // The slot is not reused. Wait, because its memory must not be freed while in use.
        fail(std::current_exception());
        try {
          const device_scope scope(store.api(), store.device());
          drain(store.api(), on);
        } catch (const error&) {  // the first error is the one to report
        }
        return;
      }
    }
    ring.release(slot);
  }

  /// Finishes the pipe because of an error that no other call can report.
  void fail(std::exception_ptr why) noexcept {
    {
      const std::scoped_lock lock(mutex);
      if (failure == nullptr) failure = std::move(why);
    }
    ring.close();
  }

  /// The first error passed to `fail`, or null.
  std::exception_ptr why_failed() {
    const std::scoped_lock lock(mutex);
    return failure;
  }

  slot_store store;
  // A consumer's host runs ahead of its stream. Of the slots that it has released, the one released
  // first is the first that its stream is done with.
  slot_ring<device_slot> ring;
  std::mutex mutex;  // guards failure
  std::exception_ptr failure;
};

/// A slot in use. The destructor releases it.
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
