// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include <millrace/detail/export.hpp>

namespace millrace::loader {

/// The memory of a slot, aligned to 64 bytes. Whoever holds the pointer holds the memory, and what
/// it came from.
using memory_block = std::shared_ptr<std::byte>;

/// Gives all slots of a ring their memory, `bytes` each; called once, before the first batch.
using slot_memory = std::function<std::vector<memory_block>(std::size_t slots, std::size_t bytes)>;

/// Zeroed memory of the C++ library, each slot at a page: the first touch of each page is paid
/// here, and by the thread that asks, so that pages lie on its NUMA node. All slots are one region,
/// of huge pages where it is large enough and the system gives them: with small ones, three slots
/// of 0.5 MiB do not stay in a cache of 2 MiB, as their pages fall on the same places of it.
MILLRACE_EXPORT std::vector<memory_block> plain_memory(std::size_t slots, std::size_t bytes);

}  // namespace millrace::loader
