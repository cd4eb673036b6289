// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/batch/slot_memory.hpp>
#include <millrace/loader/detail/memory/pinned_pool.hpp>

namespace millrace::loader {

/// Returns an allocator that takes slots from a pool of pinned memory. Use it as
/// `loader_options::memory`. The pool lives until the last slot is released.
///
/// @param options  options of the pool; its number and size of slots are ignored
/// @param report   output: describes the memory that the pool obtained; may be null
MILLRACE_EXPORT slot_memory pinned_memory(pool_options options = {},
                                          std::shared_ptr<pool_report> report = nullptr);

}  // namespace millrace::loader
