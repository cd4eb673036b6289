// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <new>
#include <optional>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/loader/cuda/detail/cuda_api.hpp>
#include <millrace/loader/cuda/detail/find_device.hpp>
#include <millrace/loader/cuda/detail/handles.hpp>
#include <millrace/loader/cuda/detail/output_layout.hpp>
#include <millrace/loader/cuda/detail/staged_batch.hpp>
#include <millrace/loader/cuda/detail/stream_order.hpp>

namespace millrace::loader::cuda {

/// One micro-batch whose fields are filled or are being filled. The slot is a view into its
/// `slot_store`.
struct device_slot {
  std::byte* memory = nullptr;  ///< device memory, or host memory if there is no device
  event ready = nullptr;        ///< completes when the fields are filled; null on the host
  /// Completes when the consumer is done. It is recorded on the consumer's stream, and only streams
  /// wait for it. Null on the host.
  event released = nullptr;

  batch_work work;  ///< shapes and field addresses of the last batch made here
  std::int32_t max_seqlen = 0;
  dataset::batch_number number;
  std::vector<std::int64_t> positions;  // on the host, [rows]
  std::vector<std::int64_t> sources;    // on the host, [rows]

  /// A stream that uses the batch in addition to the consumer's own stream.
  struct other_user {
    stream on = nullptr;
    event released = nullptr;  ///< completes when that stream is done
  };
  std::vector<other_user> others;  ///< guarded by the mutex of `pipe_state` while the slot is held
};

/// A device buffer that host slots are copied to, and the events of the last such copy.
struct raw_block {
  std::byte* memory = nullptr;
  event copied = nullptr;  ///< completes when the host slot may be refilled
  /// Completes when the kernel has read the buffer. This is the event `ready` of the slot that the
  /// kernel filled. Null before the first copy.
  event read = nullptr;
};

/// The memory of a pipe's slots and, with a device, the pipe's streams and events. The constructor
/// allocates everything once, except for the events of streams other than the consumer's.
///
/// The destructor waits until nothing on the device uses the resources that it frees. If a wait
/// fails, it frees no memory.
///
/// Copies and kernels have one stream each. On a common stream, a copy would run after the previous
/// batch's kernel, and that kernel may wait for the consumer. The copy would then finish too late,
/// and would hold its host slot until then. With two streams, large copies also overlap with
/// kernels. If all streams share one hardware queue (`CUDA_DEVICE_MAX_CONNECTIONS=1`), operations
/// run in the order of their submission, as on one stream. No operation waits for a later one, so
/// this cannot deadlock.
///
/// Both streams have the highest priority. A kernel takes microseconds and must not wait for the
/// consumer's large kernels.
class slot_store {
 public:
  /// @param api  null if there is no device; the slots are then in host memory
  /// @throws cuda_error  the device is out of memory or broken
  slot_store(const cuda_api* api, int device, const slot_layout& largest,
             const wanted_fields& fields, std::size_t slots)
      : api_(api), device_(device), outputs_(largest, fields) {
    if (api_ == nullptr) {
      host_memory_ = allocate_host(outputs_.bytes() * slots);
      return;
    }
    const device_scope scope(*api_, device);
    const outside_captures unforbidden(*api_);
    check_kernels(*api_, device);
    constexpr std::size_t unit = output_layout::alignment;
    raw_stride_ = (largest.capacity_bytes() + unit - 1) / unit * unit;
    raw_memory_ = allocate_device(*api_, raw_blocks * raw_stride_);
    device_memory_ = allocate_device(*api_, outputs_.bytes() * slots);
    const int priority = highest_priority(*api_);
    copies_ = make_stream(*api_, priority);
    kernels_ = make_stream(*api_, priority);
    for (owned_event& each : copied_) each = make_host_event(*api_);
    for (std::size_t i = 0; i < slots; ++i) {
      ready_.push_back(make_host_event(*api_));
      released_.push_back(make_event(*api_));
    }
  }
  slot_store(const slot_store&) = delete;
  slot_store& operator=(const slot_store&) = delete;

  // Frees everything in the destructor's body, while the right device is current. On a thread that
  // has no current device, a call that frees memory would create a context on the first device.
  ~slot_store() {
    if (api_ == nullptr) return;
    std::optional<device_scope> scope;
    std::optional<outside_captures> unforbidden;
    try {
      scope.emplace(*api_, device_);
      unforbidden.emplace(*api_);
    } catch (...) {  // NOLINT(bugprone-empty-catch): everything below works without them
    }
    try {
      // The pipe's thread has waited for all copies, or called keep_memory(). A host thread would
      // spin if it waited for the events of the consumer's streams, so the stream of the kernels
      // waits for them.
      for (const owned_event& released : released_) wait(*api_, kernels(), released.get().value);
      for (const owned_event& released : others_) wait(*api_, kernels(), released.get().value);
      const event ended = ready_.front().get().value;
      record(*api_, ended, kernels());
      wait_on_host(*api_, ended);
    } catch (...) {  // no caller is left to report to
      kept_ = true;
    }
    others_.clear();
    released_.clear();
    ready_.clear();
    for (owned_event& each : copied_) each.reset();
    kernels_.reset();
    copies_.reset();
    if (kept_) {
      (void)device_memory_.release();
      (void)raw_memory_.release();
    }
    device_memory_.reset();
    raw_memory_.reset();
  }

  /// Prevents the destructor from freeing the memory. Called if the pipe cannot find out when
  /// operations have stopped using the memory. May be called on any thread.
  void keep_memory() noexcept { kept_ = true; }

  bool on_device() const noexcept { return api_ != nullptr; }
  /// @pre on_device()
  const cuda_api& api() const noexcept { return *api_; }
  int device() const noexcept { return device_; }
  stream copies() const noexcept { return copies_.get().value; }
  stream kernels() const noexcept { return kernels_.get().value; }

  /// Two blocks: while a copy fills one of them, the previous batch's copy or kernel may still use
  /// the other.
  static constexpr std::size_t raw_blocks = 2;
  /// @pre on_device(), i < raw_blocks
  raw_block raw(std::size_t i) const {
    return {static_cast<std::byte*>(raw_memory_.get().value) + i * raw_stride_,
            copied_[i].get().value};
  }

  /// Returns an event for a stream that uses a batch in addition to the consumer's own stream.
  /// After making another stream wait for the event, pass the event to `end_other`.
  /// @pre only one thread at a time calls `begin_other` or `end_other`
  /// @throws cuda_error  the runtime call failed
  event begin_other() {
    if (spare_others_.empty()) {
      spare_others_.reserve(others_.size() + 1);
      others_.reserve(others_.size() + 1);
      others_.push_back(make_event(*api_));
      return others_.back().get().value;
    }
    const event spare = spare_others_.back();
    spare_others_.pop_back();
    return spare;
  }
  // allocates nothing, because `begin_other` has reserved the space
  void end_other(event ended) noexcept { spare_others_.push_back(ended); }

  const output_layout& outputs() const noexcept { return outputs_; }

  device_slot slot(std::size_t i) const {
    device_slot slot;
    slot.memory = host_memory_.get();
    if (on_device()) {
      slot.memory = static_cast<std::byte*>(device_memory_.get().value);
      slot.ready = ready_[i].get().value;
      slot.released = released_[i].get().value;
    }
    slot.memory += i * outputs_.bytes();
    return slot;
  }

 private:
  struct free_aligned {
    void operator()(std::byte* memory) const noexcept { std::free(memory); }
  };
  using host_block = std::unique_ptr<std::byte, free_aligned>;

  static host_block allocate_host(std::size_t bytes) {
    void* memory = std::aligned_alloc(output_layout::alignment, bytes);
    if (memory == nullptr) throw std::bad_alloc();
    return host_block(static_cast<std::byte*>(memory));
  }

  const cuda_api* api_;
  int device_;
  output_layout outputs_;
  host_block host_memory_;
  device_memory raw_memory_;
  std::size_t raw_stride_ = 0;
  device_memory device_memory_;
  std::atomic<bool> kept_{false};
  owned_stream copies_;
  owned_stream kernels_;
  std::array<owned_event, raw_blocks> copied_;
  std::vector<owned_event> ready_;
  std::vector<owned_event> released_;
  std::vector<owned_event> others_;
  std::vector<event> spare_others_;  // the events of `others_` that no stream uses
};

}  // namespace millrace::loader::cuda
