// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/data_share.hpp>

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

}  // namespace millrace::dataset
