// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// A data-parallel rank, and the number of samples in its micro-batches.
struct data_share {
  std::int64_t micro_batch_size = 1;
  std::int64_t ranks = 1;  ///< data-parallel ranks
  std::int64_t rank = 0;

  /// Samples in one micro-batch of all ranks together.
  std::int64_t width() const noexcept { return micro_batch_size * ranks; }
};

namespace detail {

MILLRACE_EXPORT void check_sampler(std::int64_t total_samples, std::int64_t consumed_samples,
                                   const data_share& share);

}  // namespace detail
}  // namespace millrace::dataset
