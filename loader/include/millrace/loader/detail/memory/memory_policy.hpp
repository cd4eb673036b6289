// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstddef>
#include <span>
#include <string>
#include <system_error>

#include <millrace/detail/export.hpp>

/// Selects the NUMA node of memory with the system calls set_mempolicy(2) and mbind(2), without
/// libnuma. The node is a preference: if the node is full, the kernel uses another node.
namespace millrace::loader {

namespace detail {

inline std::string message_of(int code) {
  return std::generic_category().message(code);
}

/// Maximum number of nodes of any kernel build: nodes 0 to 1023.
inline constexpr unsigned long most_numa_nodes = 1024;
using numa_mask = std::array<unsigned long, most_numa_nodes / (sizeof(long) * CHAR_BIT)>;

inline numa_mask mask_of(int node) noexcept {
  constexpr unsigned bits = sizeof(long) * CHAR_BIT;
  numa_mask mask{};
  mask[static_cast<unsigned>(node) / bits] = 1UL << (static_cast<unsigned>(node) % bits);
  return mask;
}

inline bool is_numa_node(int node) noexcept {
  return node >= 0 && static_cast<unsigned long>(node) < most_numa_nodes;
}

}  // namespace detail

/// Makes pages of `memory` come from `node` if they are first touched after this call.
///
/// @pre memory begins at a page boundary
/// @return 0, or the errno: ENOSYS if the kernel lacks NUMA support, EINVAL if the node does not
///         exist
MILLRACE_EXPORT int prefer_node(std::span<std::byte> memory, int node) noexcept;

/// While this object exists, pages that this thread is the first to touch come from `node`. The
/// destructor restores the previous policy. Use it around calls of other code that allocates memory
/// on this thread. Node -1 changes nothing.
class preferred_node {
 public:
  explicit preferred_node(int node) noexcept {
    if (node < 0) return;
    if (!detail::is_numa_node(node)) {
      error_ = EINVAL;
      return;
    }
    if (::syscall(SYS_get_mempolicy, &mode_, before_.data(), detail::most_numa_nodes + 1, nullptr,
                  0UL) != 0) {
      error_ = errno;
      return;
    }
    const detail::numa_mask mask = detail::mask_of(node);
    if (::syscall(SYS_set_mempolicy, MPOL_PREFERRED, mask.data(), detail::most_numa_nodes + 1) !=
        0) {
      error_ = errno;
      return;
    }
    set_ = true;
  }
  preferred_node(const preferred_node&) = delete;
  preferred_node& operator=(const preferred_node&) = delete;
  ~preferred_node() {
    // MPOL_DEFAULT requires a null pointer as its mask; a mask without bits is an error.
    const bool plain = mode_ == MPOL_DEFAULT;
    if (set_) {
      (void)::syscall(SYS_set_mempolicy, mode_, plain ? nullptr : before_.data(),
                      plain ? 0UL : detail::most_numa_nodes + 1);
    }
  }

  /// 0, or the errno that explains why the policy was not changed.
  int error() const noexcept { return error_; }

  /// Keeps the new policy for the rest of the thread's life.
  void keep() noexcept { set_ = false; }

 private:
  int mode_ = MPOL_DEFAULT;
  detail::numa_mask before_{};
  int error_ = 0;
  bool set_ = false;
};

}  // namespace millrace::loader
