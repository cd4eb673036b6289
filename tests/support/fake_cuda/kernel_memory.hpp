// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <millrace/loader/cuda/detail/array_copies.hpp>
#include <millrace/loader/cuda/detail/batch_tile.hpp>
#include <millrace/loader/cuda/detail/batch_work.hpp>

#include "support/fake_cuda/fake_stream.hpp"

namespace millrace::test {

namespace detail {

inline void add_use(std::vector<used_memory>& uses, const void* array, std::int64_t count,
                    std::size_t width) {
  if (array != nullptr) uses.push_back({array, static_cast<std::size_t>(count) * width});
}

}  // namespace detail

/// Returns the memory of a batch's fields, which the consumer reads.
inline std::vector<used_memory> fields_of(const loader::cuda::batch_work& work) {
  const std::int64_t elements = work.rows * work.seq_len;
  std::vector<used_memory> uses;
  for (const void* ids : {work.tokens, work.labels, work.position_ids}) {
    detail::add_use(uses, ids, elements, static_cast<std::size_t>(work.ids));
  }
  detail::add_use(uses, work.loss_mask, elements, 4);
  detail::add_use(uses, work.segment_ids, elements, 4);
  detail::add_use(uses, work.cu_seqlens, work.cu_seqlens_size, 4);
  detail::add_use(uses, work.cu_seqlens_padded, work.cu_seqlens_size, 4);
  return uses;
}

/// Returns all memory that the kernels of a batch read or write.
inline std::vector<used_memory> memory_of(const loader::cuda::batch_work& work) {
  std::vector<used_memory> uses = fields_of(work);
  detail::add_use(uses, work.text, work.rows * work.text_len, work.narrow ? 2 : 4);
  detail::add_use(uses, work.real, work.rows, 4);
  detail::add_use(uses, work.boundary_begin, work.rows + 1, 4);
  if (work.boundary_count > 0) {
    detail::add_use(uses, work.boundaries, work.boundary_count, 4);
    detail::add_use(uses, work.document_ends, work.boundary_count, 4);
    const bool both = work.cu_seqlens != nullptr && work.cu_seqlens_padded != nullptr;
    detail::add_use(uses, both ? work.unpadded_ends : nullptr, work.boundary_count, 4);
  }
  if (work.cut()) {
    const loader::cuda::slice_arrays& slices = work.slices;
    detail::add_use(uses, slices.begin, work.rows + 1, 4);
    for (const std::int32_t* array :
         {slices.ends, slices.real_ends, slices.next, slices.origins, slices.documents}) {
      detail::add_use(uses, array, slices.count, 4);
    }
  }
  if (needs_marks(work)) {
    detail::add_use(uses, work.marks, work.rows * tiles_of(work), 4);
  }
  return uses;
}

/// Returns all memory that the array-copying kernel reads or writes.
inline std::vector<used_memory> memory_of(const loader::cuda::array_copies& copies) {
  std::vector<used_memory> uses;
  for (int i = 0; i < copies.count; ++i) {
    const loader::cuda::array_copy& each = copies.arrays[i];
    detail::add_use(uses, each.from, each.bytes, 1);
    detail::add_use(uses, each.to, each.bytes, 1);
  }
  return uses;
}

}  // namespace millrace::test
