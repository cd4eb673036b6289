// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/cyclic_layout.hpp>

#include <cstdint>
#include <string>

#include <millrace/dataset/detail/megatron/data_share.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

MILLRACE_INLINE void check_cyclic(const cyclic_layout& layout, std::int64_t consumed_samples) {
  check_sampler(layout.total, consumed_samples, layout.share);
  const std::int64_t width = layout.share.width();
  const std::int64_t active = layout.active();
  if (active == 0) {
    throw config_error("there are " + std::to_string(layout.total) + " samples, expected " +
                       std::to_string(width) + " or more: one micro-batch per data-parallel rank");
  }
  const std::int64_t current = consumed_samples % active;
  if (current % width != 0) {
    throw config_error("consumed_samples is " + std::to_string(consumed_samples) + ", which is " +
                       std::to_string(current) + " into its epoch of " + std::to_string(active) +
                       " samples, expected a multiple of " + std::to_string(width) +
                       " there (micro-batch size times data-parallel ranks): resume with the "
                       "micro-batch size and ranks of the earlier run");
  }
}

}  // namespace detail

}  // namespace millrace::dataset
