// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/batch/slot_memory.hpp>
#include <millrace/loader/detail/memory/pinned_pool.hpp>

namespace millrace::loader {

/// Allocates the slots from a pinned pool; for `loader_options::memory`. The pool lives until its
/// last slot is released.
///
/// @param options  the number and size of the slots are ignored
/// @param report   receives a description of the memory that the pool obtained; may be null
MILLRACE_EXPORT slot_memory pinned_memory(pool_options options = {},
                                          std::shared_ptr<pool_report> report = nullptr);

}  // namespace millrace::loader
