// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/cyclic_layout.hpp>

#include <cstdint>
#include <limits>
#include <string>

#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

MILLRACE_INLINE void check_sampler(std::int64_t total_samples, std::int64_t consumed_samples,
                                   const data_share& share) {
  const auto refuse = [](const std::string& what, std::int64_t found, const std::string& expected) {
    throw config_error(what + " is " + std::to_string(found) + ", expected " + expected);
  };
  if (total_samples < 1) refuse("total_samples", total_samples, "1 or more: no sample to serve");
  if (consumed_samples < 0) refuse("consumed_samples", consumed_samples, "0 or more");
  if (share.micro_batch_size < 1) refuse("micro_batch_size", share.micro_batch_size, "1 or more");
  if (share.ranks < 1) refuse("the number of data-parallel ranks", share.ranks, "1 or more");
  if (share.rank < 0 || share.rank >= share.ranks) {
    refuse("the data-parallel rank", share.rank, "0 to " + std::to_string(share.ranks - 1));
  }
  if (share.micro_batch_size > std::numeric_limits<std::int64_t>::max() / share.ranks) {
    refuse("micro_batch_size", share.micro_batch_size,
           "less: times " + std::to_string(share.ranks) + " ranks it is beyond 2^63 - 1");
  }
}

}  // namespace detail

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
