// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
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
#include <millrace/loader/detail/memory/home_process.hpp>

namespace millrace::loader::cuda::detail {

/// The state that a pipe shares with its thread and its batches. The thread and the batches may
/// need the state after the pipe is destroyed. The last owner destroys the state, on any thread.
struct pipe_state {
  template <class... Arguments>
  explicit pipe_state(std::size_t slots, std::int64_t ahead, const Arguments&... arguments)
      : store(arguments..., slots),
        ring(
            slots, [this](std::size_t i) { return store.slot(i); }, slot_reuse::oldest, ahead) {}

  /// Releases a slot. The slot is refilled only after all operations that its users have submitted
  /// so far, to `on` and to the streams of `also_used_on`. May be called on any thread, with any
  /// current device: a null stream is the default stream of the pipe's device. Does nothing in a
  /// forked process.
  ///
  /// If one of the streams is being captured into a CUDA graph, the slot is never refilled and the
  /// pipe fails. An event recorded on that stream would be part of the graph, and the graph may
  /// read the slot's memory at every launch. The pipe also fails if an event cannot be recorded. In
  /// both cases, the pipe cannot find out when the slot's users are done, so the memory is never
  /// freed.
  void release(device_slot* slot, stream on) noexcept {
    if (!home.is_here()) return;
    try {
      if (store.on_device()) record_release(*slot, on);
      ring.release(slot);
    } catch (...) {
      store.keep_memory();
      fail(std::current_exception());
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

  /// Makes `release` record an event on `other`, too, so that the slot is refilled only after the
  /// operations on that stream. May be called on any thread.
  /// @throws cuda_error  an event cannot be created
  void also_used_on(device_slot& slot, stream other) {
    const std::scoped_lock lock(mutex);
    if (std::ranges::count(slot.others, other, &device_slot::other_user::on) > 0) return;
    const device_scope scope(store.api(), store.device());
    slot.others.reserve(slot.others.size() + 1);
    slot.others.push_back({other, store.begin_other()});
  }

  /// Makes the stream `after` wait until all users of a released slot are done. Operations
  /// submitted to `after` so far do not wait.
  void wait_for_users(device_slot& slot, stream after) {
    wait(store.api(), after, slot.released);
    if (slot.others.empty()) return;
    for (const device_slot::other_user& other : slot.others) {
      wait(store.api(), after, other.released);
    }
    const std::scoped_lock lock(mutex);
    for (const device_slot::other_user& other : slot.others) store.end_other(other.released);
    slot.others.clear();
  }

  void record_release(const device_slot& slot, stream on) {
    const device_scope scope(store.api(), store.device());
    record_release(slot.released, on);
    for (const device_slot::other_user& other : slot.others) {
      record_release(other.released, other.on);
    }
  }

  void record_release(event released, stream on) {
    if (is_captured(store.api(), on)) {
      ++captured;
      throw error(
          "a batch was destroyed while its stream was being captured into a CUDA graph, so its "
          "memory cannot be used again: destroy batches, and tensors made from them, before the "
          "capture begins or after it has ended");
    }
    record(store.api(), released, on);
  }

  const home_process home;
  slot_store store;
  // A consumer's thread runs ahead of its stream. The stream finishes with the slots in the order
  // in which the thread releases them, so the ring reuses the oldest released slot first.
  slot_ring<device_slot> ring;
  std::atomic<std::int64_t> captured{0};  // batches destroyed while their stream was being captured
  std::mutex mutex;  // guards `failure`, `device_slot::others` of held slots, and their events
  std::exception_ptr failure;
};

/// Rejects `cudaStreamPerThread`, because this handle means a different stream on each thread. A
/// batch may be destroyed on another thread, e.g. by a tensor's deleter. The event of the batch
/// would then not be ordered after the operations that used the batch.
inline void refuse_per_thread(stream on) {
  constexpr std::uintptr_t per_thread = 2;  // cudaStreamPerThread
  if (reinterpret_cast<std::uintptr_t>(on) != per_thread) return;
  throw config_error(
      "the consumer's stream is cudaStreamPerThread (handle 2), expected a stream that is the same "
      "on every thread, because batches may be destroyed on another thread: pass a stream of "
      "cudaStreamCreateWithFlags, or null for the default stream");
}

/// A slot in use. The destructor releases it.
class held_slot {
 public:
  /// Makes an object that holds no slot yet.
  /// @param on  the consumer's stream
  held_slot(std::shared_ptr<pipe_state> state, stream on) noexcept
      : state_(std::move(state)), on_(on) {}
  held_slot(const held_slot&) = delete;
  held_slot& operator=(const held_slot&) = delete;
  ~held_slot() {
    if (slot_ != nullptr) state_->release(slot_, on_);
  }

  /// @param slot  taken from the ring
  void hold(device_slot* slot) noexcept { slot_ = slot; }

  const device_slot& slot() const noexcept { return *slot_; }
  bool on_device() const noexcept { return state_->store.on_device(); }

  /// Makes operations that are submitted to `other` after this call see filled arrays.
  /// @throws config_error  the stream is being captured into a CUDA graph
  void wait_on(stream other) const {
    if (!on_device()) return;
    const cuda_api& api = state_->store.api();
    // A null stream is the default stream of the current device.
    const device_scope scope(api, state_->store.device());
    if (is_captured(api, other)) {
      throw config_error(
          "a stream is being captured into a CUDA graph, and cannot wait for a batch meanwhile: "
          "order it after the batch before the capture begins");
    }
    wait(api, other, slot_->ready);
  }

  void also_used_on(stream other) const {
    if (on_device() && other != on_) state_->also_used_on(*slot_, other);
  }

 private:
  std::shared_ptr<pipe_state> state_;
  device_slot* slot_ = nullptr;
  stream on_;
};

}  // namespace millrace::loader::cuda::detail
