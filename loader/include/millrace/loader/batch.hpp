// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <millrace/loader/slot_ring.hpp>

namespace millrace::loader {

namespace detail {

/// The memory of one micro-batch.
struct batch_slot {
  std::vector<std::int64_t> tokens;
  std::vector<std::int64_t> labels;
  std::int64_t micro_batch = 0;
  std::int64_t first_sample = 0;
};

}  // namespace detail

/// One micro-batch. Arrays are row-major, shape [batch_size, seq_len].
///
/// It holds a slot of its loader's ring until it is destroyed or assigned to; the spans are valid
/// as long, moves included. It may outlive the loader and be destroyed on any thread. One that was
/// moved from holds nothing, and may only be destroyed or assigned to.
class batch {
 public:
  /// Input ids.
  std::span<const std::int64_t> tokens() const noexcept { return slot().tokens; }
  /// The token that follows each input id: `tokens` shifted left by one.
  std::span<const std::int64_t> labels() const noexcept { return slot().labels; }

  /// Number of this micro-batch, from 0 where the loader started.
  std::int64_t micro_batch() const noexcept { return slot().micro_batch; }
  /// Sample in row 0; row i holds sample first_sample() + i.
  std::int64_t first_sample() const noexcept { return slot().first_sample; }

 private:
  friend class batch_loader;
  using slots = slot_ring<detail::batch_slot>;

  // The ring owns the memory, so each batch keeps the ring.
  struct give_back {
    std::shared_ptr<slots> ring;
    void operator()(detail::batch_slot* slot) const noexcept { ring->release(slot); }
  };

  batch(std::shared_ptr<slots> ring, detail::batch_slot* slot) noexcept
      : slot_(slot, give_back{std::move(ring)}) {}

  const detail::batch_slot& slot() const noexcept {
    assert(slot_ != nullptr);
    return *slot_;
  }

  std::unique_ptr<detail::batch_slot, give_back> slot_;
};

}  // namespace millrace::loader
