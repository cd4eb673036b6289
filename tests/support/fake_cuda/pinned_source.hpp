// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include <millrace/loader/cuda/detail/handles.hpp>
#include <millrace/loader/cuda/detail/staged_batch.hpp>

#include "support/fake_cuda/random_batch.hpp"

namespace millrace::test {

/// Replaces the host side of a loader. It serves prepared batches from a few page-locked slots. It
/// overwrites a released slot at once, so that a copy that reads the slot too late copies wrong
/// bytes.
class pinned_source {
 public:
  pinned_source(const loader::cuda::cuda_api* api, std::vector<random_batch> batches,
                std::size_t slots = 2)
      : state_(std::make_shared<state>()), batches_(std::move(batches)) {
    for (const random_batch& batch : batches_) {
      state_->bytes = std::max(state_->bytes, batch.layout.capacity_bytes());
    }
    for (std::size_t i = 0; i < slots; ++i) {
      if (api == nullptr) {
        state_->plain.emplace_back(state_->bytes + 64);
        void* memory = state_->plain.back().data();
        std::size_t room = state_->bytes + 64;
        state_->free.push_back(static_cast<std::byte*>(std::align(64, 1, memory, room)));
      } else {
        state_->pinned.push_back(loader::cuda::allocate_pinned(*api, state_->bytes));
        state_->free.push_back(static_cast<std::byte*>(state_->pinned.back().get().value));
      }
    }
  }

  /// Makes the source call `tell` before it overwrites a slot. The arguments are the address and
  /// size of the slot.
  void tell_writes(std::function<void(const void*, std::size_t)> tell) {
    state_->tell_writes = std::move(tell);
  }

  /// Makes the source throw instead of serving batch k, counted from 0.
  void fail_at(std::int64_t k) { fail_at_ = k; }

  loader::cuda::batch_source source(bool counted = true) {
    loader::cuda::batch_source result;
    result.next = [this] { return next(); };
    if (counted) result.count = static_cast<std::int64_t>(batches_.size());
    return result;
  }

  const std::vector<random_batch>& batches() const noexcept { return batches_; }
  /// The largest number of slots in use at the same time.
  std::size_t most_held() const {
    const std::scoped_lock lock(state_->mutex);
    return state_->most_held;
  }

 private:
  struct state {
    std::mutex mutex;
    std::condition_variable freed;
    std::size_t bytes = 0;
    std::vector<std::vector<std::byte>> plain;
    std::vector<loader::cuda::pinned_block> pinned;
    std::vector<std::byte*> free;
    std::size_t held = 0;
    std::size_t most_held = 0;
    std::function<void(const void*, std::size_t)> tell_writes = [](const void*, std::size_t) {};
  };

  std::optional<loader::cuda::staged_batch> next() {
    if (at_ == fail_at_) throw std::runtime_error("the source failed");
    if (at_ == static_cast<std::int64_t>(batches_.size())) return std::nullopt;
    const random_batch& batch = batches_[static_cast<std::size_t>(at_)];
    std::byte* slot = nullptr;
    {
      std::unique_lock lock(state_->mutex);
      state_->freed.wait(lock, [&] { return !state_->free.empty(); });
      slot = state_->free.front();
      state_->free.erase(state_->free.begin());
      state_->most_held = std::max(state_->most_held, ++state_->held);
    }
    std::memcpy(slot, batch.slot.data(), batch.slot.size());
    const std::shared_ptr<const void> hold(slot, [state = state_](std::byte* done) {
      state->tell_writes(done, state->bytes);
      std::memset(done, 0xEE, state->bytes);
      const std::scoped_lock lock(state->mutex);
      state->free.push_back(done);
      --state->held;
      state->freed.notify_one();
    });
    const std::int64_t number = at_++;
    loader::cuda::staged_batch staged{.slot = slot, .layout = batch.layout};
    staged.boundaries = batch.boundaries;
    staged.slices = batch.slices;
    staged.number.step = number / 2;
    staged.number.micro_batch = number;
    staged.number.first_sample = 3 * number;
    positions_ = {number, 8};
    sources_ = {1, number};
    staged.positions = positions_;
    staged.sources = sources_;
    staged.hold = hold;
    return staged;
  }

  std::shared_ptr<state> state_;
  std::vector<random_batch> batches_;
  std::int64_t at_ = 0;
  std::int64_t fail_at_ = -1;
  std::vector<std::int64_t> positions_;
  std::vector<std::int64_t> sources_;
};

}  // namespace millrace::test
