// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace millrace::loader {

/// Kinds of host memory, the best for copies to a device and for direct reads first.
enum class memory_kind : std::uint8_t {
  cuda,     ///< page-locked by the CUDA runtime: copies run at the link's speed, without a stop
  hugetlb,  ///< huge pages of the pool that the administrator made; never swapped
  thp,      ///< transparent huge pages
  locked,   ///< small pages, locked (mlock): to CUDA this is pageable memory
  plain,    ///< small pages, touched beforehand
};

/// "cuda", "hugetlb", "thp", "mlock", "plain".
inline const char* name_of(memory_kind kind) noexcept {
  constexpr const char* names[] = {"cuda", "hugetlb", "thp", "mlock", "plain"};
  return names[static_cast<int>(kind)];
}

/// How memory is had from the CUDA runtime, for those who know nothing of CUDA. Empty: there is
/// none.
struct pinned_memory_hook {
  void* context = nullptr;  ///< given to both; outlives all memory that was had

  /// Page-locked memory that every device of the process can copy from and to
  /// (cudaHostAllocPortable), or null, and in `why` the reason as a clause ("no CUDA device is
  /// usable (error 35)"). Must not throw.
  void* (*allocate)(void* context, std::size_t size_bytes, std::string& why) = nullptr;

  /// Ends it. Waits for nothing: copies from and to it have ended.
  void (*release)(void* context, void* memory) = nullptr;

  explicit operator bool() const noexcept { return allocate != nullptr && release != nullptr; }
  friend bool operator==(const pinned_memory_hook&, const pinned_memory_hook&) = default;
};

}  // namespace millrace::loader
