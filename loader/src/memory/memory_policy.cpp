// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/memory/memory_policy.hpp>

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstddef>
#include <span>

namespace millrace::loader {

MILLRACE_INLINE int prefer_node(std::span<std::byte> memory, int node) noexcept {
  if (!detail::is_numa_node(node)) return EINVAL;
  const detail::numa_mask mask = detail::mask_of(node);
  // The kernel uses one bit less of the mask than the size argument says.
  const long result = ::syscall(SYS_mbind, memory.data(), memory.size(), MPOL_PREFERRED,
                                mask.data(), detail::most_numa_nodes + 1, 0U);
  return result == 0 ? 0 : errno;
}

}  // namespace millrace::loader
