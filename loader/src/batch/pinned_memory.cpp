// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/batch/pinned_memory.hpp>

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include <millrace/loader/detail/batch/slot_memory.hpp>
#include <millrace/loader/detail/memory/pinned_pool.hpp>

namespace millrace::loader {

MILLRACE_INLINE slot_memory pinned_memory(pool_options options,
                                          std::shared_ptr<pool_report> report) {
  return [options = std::move(options), report = std::move(report)](std::size_t slots,
                                                                    std::size_t bytes) {
    pool_options sized = options;
    sized.slots = slots;
    sized.slot_bytes = bytes;
    const auto pool = std::make_shared<pinned_pool>(sized);
    if (report) *report = pool->report();
    std::vector<memory_block> blocks;
    for (std::size_t i = 0; i < slots; ++i) blocks.emplace_back(pool, pool->slot(i).data());
    return blocks;
  };
}

}  // namespace millrace::loader
