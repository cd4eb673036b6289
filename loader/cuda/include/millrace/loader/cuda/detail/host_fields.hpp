// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include <millrace/dataset/detail/sample/cu_seqlens.hpp>
#include <millrace/dataset/detail/sample/fields.hpp>
#include <millrace/loader/cuda/detail/batch_work.hpp>
#include <millrace/loader/detail/batch/host_fields.hpp>
#include <millrace/loader/detail/batch/sliced_fields.hpp>

namespace millrace::loader::cuda {

namespace detail {

template <class T>
std::span<T> row_of(T* array, std::int64_t row, std::int64_t length) {
  if (array == nullptr) return {};
  return {array + row * length, static_cast<std::size_t>(length)};
}

inline dataset::field_options options_of(const batch_work& work) {
  dataset::field_options options;
  options.extra_token = work.text_len > work.seq_len;
  options.reset_position_ids = work.rules.positions == position_rule::after_eod;
  options.eod_mask_loss = work.rules.eod_mask_loss;
  options.eod = work.rules.eod;
  options.pad = work.rules.pad;
  return options;
}

/// The slices of one row.
inline loader::detail::row_slices slices_of(const batch_work& work, std::int64_t row) {
  const std::int32_t first = work.slices.begin[row];
  const auto count = static_cast<std::size_t>(work.slices.begin[row + 1] - first);
  const auto part = [&](const std::int32_t* array) { return std::span(array + first, count); };
  return {part(work.slices.ends), part(work.slices.real_ends), part(work.slices.next),
          part(work.slices.origins), part(work.slices.documents)};
}

template <class Token, class Id>
void fill_row(const batch_work& work, std::int64_t row) {
  const auto positions = row_of(static_cast<Id*>(work.position_ids), row, work.seq_len);
  // With context parallelism, the slices already end at the boundaries.
  const bool by_index = work.rules.positions == position_rule::boundaries && !work.cut();
  dataset::sample_fields<Id> out;
  out.tokens = row_of(static_cast<Id*>(work.tokens), row, work.seq_len);
  out.labels = row_of(static_cast<Id*>(work.labels), row, work.seq_len);
  out.loss_mask = row_of(work.loss_mask, row, work.seq_len);
  if (!by_index) out.position_ids = positions;
  const auto text = row_of(static_cast<const Token*>(work.text), row, work.text_len);
  if (work.cut()) {
    loader::detail::fill_sliced_fields<Token, Id>(text, slices_of(work, row), options_of(work),
                                                  out);
    return;
  }
  const std::int32_t first = work.boundary_begin[row];
  const std::int32_t last = work.boundary_begin[row + 1];
  if (!work.packed()) {
    dataset::fill_fields<Token, Id>(text, work.real[row], work.seq_len, options_of(work), out);
  }
  // As in `dataset::fill_packed_fields`, each document's share of the row is a separate text.
  for (std::int32_t b = first + 1; work.packed() && b < last; ++b) {
    const std::int32_t begin = work.boundaries[b - 1];
    const std::int32_t count = work.boundaries[b] - begin;
    dataset::fill_fields<Token, Id>(
        text.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(count)),
        work.document_ends[b] - begin, count, options_of(work),
        dataset::part_of(out, begin, count));
  }
  if (!by_index || positions.empty()) return;
  dataset::fill_position_ids(
      std::span(work.boundaries + first, static_cast<std::size_t>(last - first)), positions);
}

template <class Token>
void fill_row(const batch_work& work, std::int64_t row) {
  if (work.ids == id_width::i32) {
    fill_row<Token, std::int32_t>(work, row);
  } else {
    fill_row<Token, std::int64_t>(work, row);
  }
  if (work.counted == nullptr) return;
  loader::detail::apply_counted(work.counted + row * work.counted_words,
                                row_of(work.loss_mask, row, work.seq_len));
}

inline void fill_segment_ids(const batch_work& work, std::int64_t row) {
  const auto out = row_of(work.segment_ids, row, work.seq_len);
  const auto fill = [&](std::int32_t begin, std::int32_t padding, std::int32_t next,
                        std::int32_t number) {
    const std::int32_t end = std::clamp(padding, begin, next);
    std::fill(out.begin() + begin, out.begin() + end, number);
    std::fill(out.begin() + end, out.begin() + next, 0);
  };
  if (work.cut()) {
    const auto slices = slices_of(work, row);
    for (std::size_t s = 1; s < slices.ends.size(); ++s) {
      fill(slices.ends[s - 1], slices.real_ends[s], slices.ends[s], slices.documents[s]);
    }
    return;
  }
  const std::int32_t first = work.boundary_begin[row];
  for (std::int32_t b = first + 1; b < work.boundary_begin[row + 1]; ++b) {
    const std::int32_t padding = work.packed() ? work.document_ends[b] : work.real[row];
    fill(work.boundaries[b - 1], padding, work.boundaries[b], b - first);
  }
}

inline void fill_boundaries(const batch_work& work) {
  element::put_entry(work, 0, 0, 0);
  for (std::int64_t row = 0; row < work.rows; ++row) {
    for (std::int64_t b = work.boundary_begin[row] + 1; b < work.boundary_begin[row + 1]; ++b) {
      element::put_boundary(work, row, b);
    }
  }
  for (std::int64_t e = work.cu_seqlens_used(); e < work.cu_seqlens_size; ++e) {
    element::put_unused_entry(work, e);
  }
}

}  // namespace detail

/// Makes the same fields as the kernel, for machines without a device. Uses the functions of
/// `dataset`, which are the fastest on a CPU. May be called on any thread.
inline void fill_on_host(const batch_work& work) {
  for (std::int64_t row = 0; row < work.rows; ++row) {
    if (work.narrow) {
      detail::fill_row<std::uint16_t>(work, row);
    } else {
      detail::fill_row<std::int32_t>(work, row);
    }
    if (work.segment_ids != nullptr) detail::fill_segment_ids(work, row);
  }
  if (work.has_cu_seqlens() && work.rows > 0) detail::fill_boundaries(work);
}

/// Returns the largest number of tokens that one document has in one row. Attention kernels need it
/// in addition to cu_seqlens.
///
/// @param work  the calling thread must be able to read its arrays
inline std::int32_t longest_document(const batch_work& work) noexcept {
  std::int32_t longest = 0;
  for (std::int64_t row = 0; row < work.rows; ++row) {
    for (std::int64_t b = work.boundary_begin[row] + 1; b < work.boundary_begin[row + 1]; ++b) {
      longest = std::max(longest, work.boundaries[b] - work.boundaries[b - 1]);
    }
  }
  return longest;
}

}  // namespace millrace::loader::cuda
