// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
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
  explicit pipe_state(std::size_t slots, std::int64_t ahead, const Arguments&... arguments)
      : store(arguments..., slots),
        ring(
            slots, [this](std::size_t i) { return store.slot(i); }, slot_reuse::oldest, ahead) {}

  /// Releases a slot after all operations that the consumer has submitted to `on` so far. May be
  /// called on any thread, with any current device: a null `on` is the default stream of the pipe's
  /// device.
  ///
  /// If `on` is being captured into a CUDA graph, the slot is never filled again and the pipe
  /// fails: an event recorded there would be part of the graph, and the graph may read the slot's
  /// memory whenever it is launched.
  void release(device_slot* slot, stream on) noexcept {
    try {
      if (store.on_device()) record_release(*slot, on);
      ring.release(slot);
    } catch (...) {
      fail(std::current_exception());
      wait_or_keep(on);
    }
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

  void record_release(const device_slot& slot, stream on) {
    const device_scope scope(store.api(), store.device());
    if (is_captured(store.api(), on)) {
      ++captured;
      store.keep_memory();
      throw error(
          "a batch was destroyed while its stream was being captured into a CUDA graph, so its "
          "memory cannot be used again: destroy batches, and tensors made from them, before the "
          "capture begins or after it has ended");
    }
    record(store.api(), slot.released, on);
  }

  /// Waits for the stream of a slot that could not be released, because the slot's memory must not
  /// be freed while in use. If that fails, the memory is never freed.
  void wait_or_keep(stream on) noexcept {
    try {
      const device_scope scope(store.api(), store.device());
      const outside_captures unforbidden(store.api());
      if (!is_captured(store.api(), on)) drain(store.api(), on);
    } catch (...) {  // the first error is the one to report
      store.keep_memory();
    }
  }

  slot_store store;
  // A consumer's host runs ahead of its stream. Of the slots that it has released, the one released
  // first is the first that its stream is done with.
  slot_ring<device_slot> ring;
  std::atomic<std::int64_t> captured{0};  // batches destroyed on a stream being captured
  std::mutex mutex;                       // guards failure
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
