// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Which data-parallel rank asks, and how many samples one of its micro-batches has.
struct data_share {
  std::int64_t micro_batch_size = 1;
  std::int64_t ranks = 1;  ///< of data parallelism
  std::int64_t rank = 0;

  /// Samples that all ranks together take in one micro-batch.
  std::int64_t width() const noexcept { return micro_batch_size * ranks; }
};

namespace detail {

MILLRACE_EXPORT void check_sampler(std::int64_t total_samples, std::int64_t consumed_samples,
                                   const data_share& share);

}  // namespace detail
}  // namespace millrace::dataset
