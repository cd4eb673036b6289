// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstddef>
#include <cstdint>
#include <thread>
#include <vector>

#include <millrace/loader/cuda/detail/batch_tile.hpp>
#include <millrace/loader/cuda/detail/lone_block.hpp>

namespace millrace::test {

/// State that the threads of a block share.
struct block_state {
  explicit block_state(std::int32_t threads)
      : meet(threads),
        values{std::vector<std::int32_t>(static_cast<std::size_t>(threads)),
               std::vector<std::int32_t>(static_cast<std::size_t>(threads))} {}
  std::barrier<> meet;
  std::array<std::vector<std::int32_t>, 2> values;
  loader::cuda::tile_memory memory = {};
};

/// Models a thread block of a device: its threads run the same code and meet at sync().
class thread_block {
 public:
  thread_block(std::int32_t rank, block_state& shared) : rank_(rank), shared_(&shared) {}

  std::int32_t size() const { return static_cast<std::int32_t>(shared_->values[0].size()); }
  std::int32_t rank() const { return rank_; }
  void sync() { shared_->meet.arrive_and_wait(); }
  // As on a device, calls alternate between two arrays, so each call needs only one barrier.
  std::int32_t largest(std::int32_t value) {
    std::vector<std::int32_t>& values = shared_->values[turn_];
    turn_ = 1 - turn_;
    values[static_cast<std::size_t>(rank_)] = value;
    sync();
    return *std::max_element(values.begin(), values.end());
  }
  static void set_bits(std::uint32_t* word, std::uint32_t bits) {
    std::atomic_ref(*word).fetch_or(bits, std::memory_order_relaxed);
  }
  loader::cuda::tile_memory& memory() { return shared_->memory; }

 private:
  std::int32_t rank_;
  block_state* shared_;
  std::size_t turn_ = 0;
};

/// Makes the whole batch with one block of `threads` threads, one tile after another.
inline void make_by_threads(const loader::cuda::batch_work& work, std::int32_t threads) {
  block_state shared(threads);
  std::vector<std::jthread> all;
  all.reserve(static_cast<std::size_t>(threads));
  for (std::int32_t rank = 0; rank < threads; ++rank) {
    all.emplace_back([&, rank] {
      thread_block block(rank, shared);
      make_batch(block, work);
    });
  }
}

}  // namespace millrace::test
