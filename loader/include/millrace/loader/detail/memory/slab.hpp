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
#include <millrace/loader/detail/memory/memory_kind.hpp>
#include <millrace/loader/detail/memory/system_files.hpp>

/// One block of memory of each kind: had, or told why not. What `pinned_pool` chooses from.
namespace millrace::loader::detail {

inline constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

// Kernels know them before C libraries name them.
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

/// Memory, and what holds it. The bytes do not move when this does.
struct slab {
  std::span<std::byte> bytes;
  unique_block mapped;
  unique_hooked hooked;
};

/// Touches every page, writing: 0, or the errno for which it could not.
inline int populate(std::span<std::byte> memory) noexcept {
  if (::madvise(memory.data(), memory.size(), madv_populate_write) == 0) return 0;
  return errno;
}

/// As `populate`, also by hand where the kernel cannot; only for memory that is sure to be there.
MILLRACE_EXPORT int populate_anyhow(std::span<std::byte> memory) noexcept;

/// What the CUDA runtime gives. On refusal nothing, and `why`.
MILLRACE_EXPORT std::optional<slab> cuda_slab(const pinned_memory_hook& hook,
                                              std::size_t size_bytes, std::size_t alignment,
                                              std::string& why);

/// Pages of the pool of huge pages. On refusal nothing, and `why`.
MILLRACE_EXPORT std::optional<slab> hugetlb_slab(std::size_t size_bytes, int node,
                                                 const system_files& files, std::string& why);

/// Small pages, or transparent huge ones where the kernel wills, 2 MiB-aligned, with a page on
/// either side that may not be touched, so that the kernel counts it on its own (smaps). Not
/// touched yet.
///
/// @return nothing where there is no memory to be had; errno says why.
MILLRACE_EXPORT std::optional<slab> anonymous_slab(std::size_t size_bytes);

/// Bytes of the mapping that begins at `address` that lie in transparent huge pages, by smaps.
MILLRACE_EXPORT std::uint64_t huge_bytes_at(const void* address, const system_files& files);

/// Why the kernel gives no transparent huge pages.
MILLRACE_EXPORT std::string why_no_thp(const system_files& files);

/// Locks the memory. On refusal false, and `why`.
MILLRACE_EXPORT bool lock(std::span<std::byte> memory, std::string& why);

}  // namespace millrace::loader::detail
