// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace millrace::loader {

/// Kinds of host memory, best first, for copies to a device and for direct reads.
enum class memory_kind : std::uint8_t {
  cuda,     ///< page-locked by the CUDA runtime: copies run at link speed, without blocking
  hugetlb,  ///< huge pages of the pool that the administrator set up; never swapped
  thp,      ///< transparent huge pages
  locked,   ///< small pages, locked (mlock); pageable memory from CUDA's view
  plain,    ///< small pages, touched beforehand
};

/// The name of a kind: "cuda", "hugetlb", "thp", "mlock", "plain".
inline const char* name_of(memory_kind kind) noexcept {
  constexpr const char* names[] = {"cuda", "hugetlb", "thp", "mlock", "plain"};
  return names[static_cast<int>(kind)];
}

/// Functions that allocate memory from the CUDA runtime, for code that does not depend on CUDA. An
/// empty hook means that there is no CUDA.
struct pinned_memory_hook {
  void* context = nullptr;  ///< passed to both functions; must outlive all allocated memory

  /// Returns page-locked memory that every device of the process can copy from and to
  /// (cudaHostAllocPortable). On failure returns null and sets `why` to the reason, as a clause
  /// ("no CUDA device is usable (error 35)"). Must not throw.
  void* (*allocate)(void* context, std::size_t size_bytes, std::string& why) = nullptr;

  /// Frees the memory. Does not wait: copies from and to it must have ended.
  void (*release)(void* context, void* memory) = nullptr;

  explicit operator bool() const noexcept { return allocate != nullptr && release != nullptr; }
  friend bool operator==(const pinned_memory_hook&, const pinned_memory_hook&) = default;
};

}  // namespace millrace::loader
