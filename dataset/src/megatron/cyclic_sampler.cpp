// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/cyclic_sampler.hpp>

#include <cassert>
#include <cstdint>
#include <string>
#include <vector>

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

MILLRACE_INLINE cyclic_sampler::cyclic_sampler(std::int64_t total_samples,
                                               std::int64_t consumed_samples,
                                               const data_share& share, bool data_sharding)
    : layout_{total_samples, share, data_sharding}, consumed_(consumed_samples) {
  detail::check_cyclic(layout_, consumed_samples);
  epoch_ = consumed_samples / layout_.active();
  first_ = consumed_samples % layout_.active() / share.width();
  batches_ = layout_.batches(share.rank) - first_;
  order_ = drawn_order(epoch_, layout_.drawn());
}

MILLRACE_INLINE std::vector<std::int64_t> cyclic_sampler::batch(std::int64_t t) const {
  assert(0 <= t && t < batches_);
  std::vector<std::int64_t> samples;
  for (std::int64_t row = 0; row < layout_.share.micro_batch_size; ++row) {
    samples.push_back(layout_.sample(order_, layout_.share.rank, first_ + t, row));
  }
  return samples;
}

}  // namespace millrace::dataset
