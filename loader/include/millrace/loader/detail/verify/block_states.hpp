// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::loader {

/// The state of a block of a file.
enum class block_state : std::uint8_t {
  unseen,    ///< not checked, and not left to the scrubber
  left,      ///< left to the scrubber (background checks): not in memory when first needed
  checking,  ///< a thread is checking the block
  good,
  bad,
};

/// Stores one byte per block of a file: the block's state, and whether the block was served before
/// it was checked. Each block is checked once, by the first thread that claims it. Thread-safe;
/// only `wait_for` waits.
class block_states {
 public:
  explicit block_states(std::uint64_t blocks) : states_(static_cast<std::size_t>(blocks)) {}

  std::uint64_t size() const noexcept { return states_.size(); }

  block_state operator[](std::uint64_t block) const noexcept {
    return static_cast<block_state>(at(block).load(std::memory_order_acquire) & state_bits);
  }

  /// Claims a block, so that the caller may check it. Returns false if the block has been checked
  /// or is being checked. Also returns false if the block was left to the scrubber and `left_too`
  /// is false.
  bool claim(std::uint64_t block, bool left_too) noexcept {
    std::uint8_t seen = at(block).load(std::memory_order_relaxed);
    for (;;) {
      const auto state = static_cast<block_state>(seen & state_bits);
      if (state != block_state::unseen && !(left_too && state == block_state::left)) return false;
      const auto next =
          static_cast<std::uint8_t>((seen & served_bit) | number(block_state::checking));
      if (at(block).compare_exchange_weak(seen, next, std::memory_order_acq_rel)) return true;
    }
  }

  /// Ends a claim. The new state is `good`, `bad` or `left`; after an error, it is `unseen` again.
  ///
  /// @return true if the block was served before its state was known
  bool settle(std::uint64_t block, block_state state) noexcept {
    // One exchange changes the whole byte. If a fetch_or followed a fetch_and, other threads could
    // see the state in between.
    std::uint8_t seen = at(block).load(std::memory_order_relaxed);
    while (!at(block).compare_exchange_weak(
        seen, static_cast<std::uint8_t>((seen & served_bit) | number(state)),
        std::memory_order_acq_rel)) {
    }
    at(block).notify_all();
    return (seen & served_bit) != 0;
  }

  /// Waits while another thread checks the block. This takes about as long as reading the block
  /// once.
  void wait_for(std::uint64_t block) const noexcept {
    for (;;) {
      const std::uint8_t seen = at(block).load(std::memory_order_acquire);
      if (static_cast<block_state>(seen & state_bits) != block_state::checking) return;
      at(block).wait(seen, std::memory_order_acquire);
    }
  }

  /// Marks a block as served before it was checked.
  ///
  /// @return the block's state at that moment; if it is `good` or `bad`, the block is not marked
  block_state serve(std::uint64_t block) noexcept {
    std::uint8_t seen = at(block).load(std::memory_order_acquire);
    for (;;) {
      const auto state = static_cast<block_state>(seen & state_bits);
      if (state == block_state::good || state == block_state::bad) return state;
      const auto next = static_cast<std::uint8_t>(seen | served_bit);
      if (at(block).compare_exchange_weak(seen, next, std::memory_order_acq_rel)) return state;
    }
  }

  /// True if `serve` marked the block.
  bool served(std::uint64_t block) const noexcept {
    return (at(block).load(std::memory_order_acquire) & served_bit) != 0;
  }

 private:
  static constexpr std::uint8_t state_bits = 7;
  static constexpr std::uint8_t served_bit = 8;
  static std::uint8_t number(block_state state) noexcept {
    return static_cast<std::uint8_t>(state);
  }
  std::atomic<std::uint8_t>& at(std::uint64_t block) noexcept {
    return states_[static_cast<std::size_t>(block)];
  }
  const std::atomic<std::uint8_t>& at(std::uint64_t block) const noexcept {
    return states_[static_cast<std::size_t>(block)];
  }

  std::vector<std::atomic<std::uint8_t>> states_;
};

}  // namespace millrace::loader
