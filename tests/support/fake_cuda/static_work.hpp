// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <millrace/loader/cuda/detail/batch_work.hpp>
#include <millrace/loader/cuda/detail/static_arrays.hpp>

namespace millrace::test {

/// Describes the first `rows` rows of static arrays as a batch, to compare or sum them as one.
inline loader::cuda::batch_work work_in(const loader::cuda::static_arrays& arrays,
                                        std::int64_t rows) {
  loader::cuda::batch_work found;
  found.rows = rows;
  found.seq_len = arrays.seq_len;
  found.ids = arrays.ids;
  found.tokens = arrays.tokens;
  found.labels = arrays.labels;
  found.position_ids = arrays.position_ids;
  found.loss_mask = arrays.loss_mask;
  found.segment_ids = arrays.segment_ids;
  found.cu_seqlens = arrays.cu_seqlens;
  found.cu_seqlens_padded = arrays.cu_seqlens_padded;
  found.cu_seqlens_size = arrays.cu_seqlens_size;
  return found;
}

}  // namespace millrace::test
