// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// The memory of a slot, aligned to 64 bytes. This pointer also keeps the memory's allocator alive.
using memory_block = std::shared_ptr<std::byte>;

/// A function that allocates the memory of all slots of a ring, `bytes` bytes per slot. The
/// function is called once, before the first batch.
using slot_memory = std::function<std::vector<memory_block>(std::size_t slots, std::size_t bytes)>;

/// Allocates zeroed memory from the C++ library. Each slot begins at a page boundary. The calling
/// thread touches every page, so that the page faults happen here and the pages are on this
/// thread's NUMA node. All slots share one region. The region uses huge pages if it is large enough
/// and the system provides them. With small pages, three slots of 0.5 MiB do not stay in a cache of
/// 2 MiB, because too many of their pages map to the same cache sets.
MILLRACE_EXPORT std::vector<memory_block> plain_memory(std::size_t slots, std::size_t bytes);

}  // namespace millrace::loader
