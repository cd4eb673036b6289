// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <memory>
#include <new>
#include <vector>

namespace millrace::loader {

/// The memory of a slot, aligned to 64 bytes. Whoever holds the pointer holds the memory, and what
/// it came from.
using memory_block = std::shared_ptr<std::byte>;

/// Gives all slots of a ring their memory, `bytes` each; called once, before the first batch.
using slot_memory = std::function<std::vector<memory_block>(std::size_t slots, std::size_t bytes)>;

/// Zeroed memory of the C++ library, at a page: the first touch of each page is paid here, and by
/// the thread that asks, so that pages lie on its NUMA node.
inline std::vector<memory_block> plain_memory(std::size_t slots, std::size_t bytes) {
  constexpr std::size_t page = 4096;
  const std::size_t rounded = std::max(page, (bytes + page - 1) / page * page);
  std::vector<memory_block> blocks;
  for (std::size_t i = 0; i < slots; ++i) {
    void* address = std::aligned_alloc(page, rounded);
    if (address == nullptr) throw std::bad_alloc();
    blocks.emplace_back(static_cast<std::byte*>(address), [](std::byte* p) { std::free(p); });
    std::fill_n(blocks.back().get(), rounded, std::byte{});
  }
  return blocks;
}

}  // namespace millrace::loader
