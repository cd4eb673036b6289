// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include <millrace/dataset/detail/lost_pages.hpp>

namespace millrace::dataset::detail {

/// Shares blocks 0 to `blocks` - 1 among threads. Each thread makes its own worker, and calls
/// worker(block) for one block after another. If a worker has a function finish(), its thread calls
/// it after its last block; no two threads do this at once. All threads can read memory maps
/// (`unblock_sigbus`).
///
/// @throws any exception of a worker: that of the first block that had one
template <class MakeWorker>
void share_blocks(std::uint64_t blocks, int workers, MakeWorker&& make_worker) {
  std::atomic<std::uint64_t> next{0};
  std::mutex mutex;  // guards the failure and finish()
  std::uint64_t failed_at = blocks;
  std::exception_ptr failure;
  const auto work = [&] {
    std::uint64_t block = 0;
    try {
      unblock_sigbus();
      auto worker = make_worker();
      while ((block = next.fetch_add(1, std::memory_order_relaxed)) < blocks) worker(block);
      if constexpr (requires { worker.finish(); }) {
        const std::scoped_lock lock(mutex);
        worker.finish();
      }
    } catch (...) {
      // Blocks are taken in order, so the blocks before this one are finished by their threads.
      const std::scoped_lock lock(mutex);
      next.store(blocks, std::memory_order_relaxed);
      if (failure && failed_at <= block) return;
      failed_at = block;
      failure = std::current_exception();
    }
  };
  {
    const auto threads =
        std::min<std::uint64_t>(static_cast<std::uint64_t>(std::max(workers, 1)), blocks);
    std::vector<std::jthread> helpers;
    for (std::uint64_t i = 1; i < threads; ++i) helpers.emplace_back(work);
    work();
  }
  if (failure) std::rethrow_exception(failure);
}

}  // namespace millrace::dataset::detail
