// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/batch/slot_memory.hpp>
#include <millrace/loader/detail/memory/pinned_pool.hpp>

namespace millrace::loader {

/// Slots out of a pinned pool, for `loader_options::memory`. The pool lives as long as one of its
/// slots is held.
///
/// @param options  all but the number of slots and their size
/// @param report   where what the pool got is told, if anybody wants to know
MILLRACE_EXPORT slot_memory pinned_memory(pool_options options = {},
                                          std::shared_ptr<pool_report> report = nullptr);

}  // namespace millrace::loader
