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

/// One micro-batch whose fields are filled, or are being filled. A view into its `slot_store`.
struct device_slot {
  std::byte* memory = nullptr;  ///< device memory, or host memory if there is no device
  event ready = nullptr;        ///< completes when the fields are filled; null on the host
  event released = nullptr;     ///< completes when the consumer is done; null on the host

  batch_work work;  ///< the last batch made: its shapes and the addresses of its fields
  std::int32_t max_seqlen = 0;
  dataset::batch_number number;
  std::vector<std::int64_t> positions;  // on the host, [rows]
  std::vector<std::int64_t> sources;    // on the host, [rows]
};

/// The memory of a pipe's slots and, with a device, its stream and events. Everything is allocated
/// once, by the constructor.
///
/// The destructor waits until nothing on the device uses what it frees. What it cannot wait for, it
/// does not free.
class slot_store {
 public:
  /// @param api  null: no device; slots are in host memory
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
    raw_ = allocate_device(*api_, largest.capacity_bytes());
    device_memory_ = allocate_device(*api_, outputs_.bytes() * slots);
    copies_ = make_stream(*api_);
    copied_ = make_event(*api_);
    for (owned_event& each : free_) each = make_event(*api_);
    for (std::size_t i = 0; i < slots; ++i) {
      ready_.push_back(make_event(*api_));
      released_.push_back(make_event(*api_));
    }
  }
  slot_store(const slot_store&) = delete;
  slot_store& operator=(const slot_store&) = delete;

  // Frees everything in the destructor's body, while the right device is current. On a thread
  // without a current device, freeing would create a context on the first device.
  ~slot_store() {
    if (api_ == nullptr) return;
    std::optional<device_scope> scope;
    std::optional<outside_captures> unforbidden;
    try {
      scope.emplace(*api_, device_);
      unforbidden.emplace(*api_);
    } catch (const error&) {  // everything below works without them
    }
    try {
      drain(*api_, copies());
      for (const owned_event& released : released_) {
        wait_on_host(*api_, released.get().value);
      }
    } catch (const error&) {  // no caller is left to report to
      kept_ = true;
      (void)raw_.release();
    }
    released_.clear();
    ready_.clear();
    for (owned_event& each : free_) each.reset();
    copied_.reset();
    copies_.reset();
    if (kept_) (void)device_memory_.release();
    device_memory_.reset();
    raw_.reset();
  }

  /// The memory of the slots is not freed, because operations that use it may run at any time. May
  /// be called on any thread.
  void keep_memory() noexcept { kept_ = true; }

  bool on_device() const noexcept { return api_ != nullptr; }
  /// @pre on_device()
  const cuda_api& api() const noexcept { return *api_; }
  int device() const noexcept { return device_; }
  /// The stream for copies and kernels.
  stream copies() const noexcept { return copies_.get().value; }
  /// Completes when the host slot that was copied last may be refilled.
  event copied() const noexcept { return copied_.get().value; }
  /// Completes when the consumer has released the slot that a batch's kernel writes to. Valid until
  /// the batch after the next one is sent.
  /// @param ticket  the batch's ticket, 0 or more
  event free(std::int64_t ticket) const noexcept {
    return free_[static_cast<std::size_t>(ticket) % free_.size()].get().value;
  }
  /// The device buffer that host slots are copied to. One is enough: the next copy into it runs
  /// after the kernel that reads it, because both are on the same stream.
  std::byte* raw() const noexcept { return static_cast<std::byte*>(raw_.get().value); }
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
  device_memory raw_;
  device_memory device_memory_;
  std::atomic<bool> kept_{false};
  owned_stream copies_;
  owned_event copied_;
  std::array<owned_event, 2> free_;
  std::vector<owned_event> ready_;
  std::vector<owned_event> released_;
};

}  // namespace millrace::loader::cuda
