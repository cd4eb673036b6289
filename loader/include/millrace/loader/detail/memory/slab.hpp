// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include <millrace/detail/export.hpp>
#include <millrace/io/detail/unique_handle.hpp>
#include <millrace/loader/detail/memory/available_memory.hpp>
#include <millrace/loader/detail/memory/memory_kind.hpp>

/// Functions for `pinned_pool`, which allocate memory of each kind or report why that failed.
namespace millrace::loader::detail {

inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// Older C libraries do not define these.
inline constexpr int madv_populate_write = 23;  // Linux 5.14
inline constexpr int map_huge_2mb = 21 << 26;
inline constexpr int pr_get_thp_disable = 42;

inline constexpr std::size_t rounded_up(std::size_t bytes, std::size_t unit) noexcept {
  return (bytes + unit - 1) / unit * unit;
}

struct mapped_block {
  void* address = nullptr;
  std::size_t size_bytes = 0;
  bool operator==(const mapped_block&) const = default;
};
inline void unmap_block(const mapped_block& block) noexcept {
  (void)::munmap(block.address, block.size_bytes);
}
using unique_block = io::unique_handle<mapped_block, mapped_block{}, unmap_block>;

struct hooked_block {
  pinned_memory_hook hook = {};
  void* memory = nullptr;
  bool operator==(const hooked_block&) const = default;
};
inline void release_hooked(const hooked_block& block) noexcept {
  block.hook.release(block.hook.context, block.memory);
}
using unique_hooked = io::unique_handle<hooked_block, hooked_block{}, release_hooked>;

/// A block of memory and its owner: `mapped`, or `hooked` for CUDA. Moving the slab does not move
/// the bytes.
struct slab {
  std::span<std::byte> bytes;
  unique_block mapped;
  unique_hooked hooked;
};

/// Touches every page for writing. Returns 0, or the errno of the failure.
inline int populate(std::span<std::byte> memory) noexcept {
  if (::madvise(memory.data(), memory.size(), madv_populate_write) == 0) return 0;
  return errno;
}

/// Like `populate`, but writes to each page itself if the kernel does not support
/// MADV_POPULATE_WRITE. Use this only if enough memory is certain to be available.
MILLRACE_EXPORT int populate_anyhow(std::span<std::byte> memory) noexcept;

/// Allocates memory from the CUDA runtime. On refusal, returns nothing and sets `why`.
MILLRACE_EXPORT std::optional<slab> cuda_slab(const pinned_memory_hook& hook,
                                              std::size_t size_bytes, std::size_t alignment,
                                              std::string& why);

/// Allocates pages from the system's huge page pool. On refusal, returns nothing and sets `why`.
MILLRACE_EXPORT std::optional<slab> hugetlb_slab(std::size_t size_bytes, int node,
                                                 const system_files& files, std::string& why);

/// Allocates a block that is aligned to 2 MiB. Its pages are transparent huge pages if the kernel
/// provides them, else small pages. An inaccessible page on either side makes the kernel list the
/// block as a separate mapping in smaps. This function does not touch the pages.
///
/// @return nothing if there is no memory; errno then gives the reason
MILLRACE_EXPORT std::optional<slab> anonymous_slab(std::size_t size_bytes);

/// Number of bytes in transparent huge pages, for the mapping that begins at `address`, according
/// to smaps.
MILLRACE_EXPORT std::uint64_t huge_bytes_at(const void* address, const system_files& files);

/// Explains why the kernel provides no transparent huge pages.
MILLRACE_EXPORT std::string why_no_thp(const system_files& files);

/// Locks the memory. On refusal, returns false and sets `why`.
MILLRACE_EXPORT bool lock(std::span<std::byte> memory, std::string& why);

}  // namespace millrace::loader::detail
