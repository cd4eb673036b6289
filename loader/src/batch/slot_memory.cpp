// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/batch/slot_memory.hpp>

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>
#include <vector>

namespace millrace::loader {

MILLRACE_INLINE std::vector<memory_block> plain_memory(std::size_t slots, std::size_t bytes) {
  constexpr std::size_t page = 4096;
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  const auto rounded = [](std::size_t size, std::size_t to) { return (size + to - 1) / to * to; };
  const std::size_t stride = std::max(page, rounded(bytes, page));
  const std::size_t all_bytes = slots * stride;
  const std::size_t alignment = all_bytes < huge_page / 2 ? page : huge_page;
  const std::size_t region_bytes = std::max(page, rounded(all_bytes, alignment));
  void* address = std::aligned_alloc(alignment, region_bytes);
  if (address == nullptr) throw std::bad_alloc();
  const memory_block all(static_cast<std::byte*>(address), [](std::byte* p) { std::free(p); });
  if (alignment == huge_page) (void)::madvise(address, region_bytes, MADV_HUGEPAGE);
  std::fill_n(all.get(), all_bytes, std::byte{});
  std::vector<memory_block> blocks;
  for (std::size_t i = 0; i < slots; ++i) blocks.emplace_back(all, all.get() + i * stride);
  return blocks;
}

}  // namespace millrace::loader
