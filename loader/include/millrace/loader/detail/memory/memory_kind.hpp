// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace millrace::loader {

/// Kinds of host memory for copies to a device and for direct reads, best first.
enum class memory_kind : std::uint8_t {
  cuda,     ///< page-locked by the CUDA runtime: copies run at link speed, without blocking
  hugetlb,  ///< huge pages from the pool that the administrator reserved; never swapped
  thp,      ///< transparent huge pages
  locked,   ///< small pages, locked with mlock; to CUDA, this is pageable memory
  plain,    ///< small pages, not locked, but all touched at allocation
};

/// The name of a kind: "cuda", "hugetlb", "thp", "mlock", "plain".
inline const char* name_of(memory_kind kind) noexcept {
  constexpr const char* names[] = {"cuda", "hugetlb", "thp", "mlock", "plain"};
  return names[static_cast<int>(kind)];
}

/// Functions that allocate and free memory of the CUDA runtime, so that the calling code need not
/// link CUDA. An empty hook means that CUDA is not available.
struct pinned_memory_hook {
  void* context = nullptr;  ///< passed to both functions; must outlive all their memory

  /// Returns page-locked memory; every device of the process can copy from it and to it
  /// (cudaHostAllocPortable). On failure, returns null and sets `why` to the reason, for example
  /// "no CUDA device is usable (error 35)". Must not throw.
  void* (*allocate)(void* context, std::size_t size_bytes, std::string& why) = nullptr;

  /// Frees the memory without waiting. All copies from and to the memory must have ended.
  void (*release)(void* context, void* memory) = nullptr;

  explicit operator bool() const noexcept { return allocate != nullptr && release != nullptr; }
  friend bool operator==(const pinned_memory_hook&, const pinned_memory_hook&) = default;
};

}  // namespace millrace::loader
