// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <millrace/loader/cuda/detail/batch_work.hpp>

/// What one thread block does: it makes a tile of a row. The functions are templates over the block
/// type, so that the same code runs on a device, on one thread, and on any number of CPU threads in
/// a test.
namespace millrace::loader::cuda {

/// Tokens of a row that one block processes.
inline constexpr std::int64_t tile_tokens = 2048;

/// Number of blocks per row.
MILLRACE_HOST_DEVICE inline std::int64_t tiles_of(const batch_work& work) {
  return (work.seq_len + tile_tokens - 1) / tile_tokens;
}

/// Number of shared integers that a block of `threads` threads needs.
MILLRACE_HOST_DEVICE constexpr std::int64_t shared_integers(std::int64_t threads) {
  return threads + tile_tokens;
}

namespace detail {

MILLRACE_HOST_DEVICE inline std::int32_t larger(std::int32_t a, std::int32_t b) {
  return a < b ? b : a;
}

/// Inclusive prefix maximum: returns the largest value of the threads up to and including this one.
/// Uses the first size() shared integers. They hold every thread's result afterwards, until the
/// next sync() and write.
template <class Block>
MILLRACE_HOST_DEVICE inline std::int32_t largest_so_far(Block& block, std::int32_t value) {
  std::int32_t* const values = block.shared();
  const std::int64_t me = block.rank();
  values[me] = value;
  block.sync();
  for (std::int64_t distance = 1; distance < block.size(); distance *= 2) {
    if (me >= distance) value = larger(value, values[me - distance]);
    block.sync();
    values[me] = value;
    block.sync();
  }
  return value;
}

/// Returns the token that has position 0 at the start of the tile. Scans the text before the tile
/// backward, one tile at a time, until a tile contains an eod.
template <class Token, class Block>
MILLRACE_HOST_DEVICE inline std::int32_t start_before(Block& block, const batch_work& work,
                                                      std::int64_t row, std::int64_t begin) {
  std::int32_t start = 0;
  // `start` is the same on all threads, so all of them leave the loop together.
  for (std::int64_t end = begin; end > 0 && start == 0; end -= tile_tokens) {
    std::int32_t mark = 0;
    for (std::int64_t i = end - tile_tokens + block.rank(); i < end; i += block.size()) {
      mark = larger(mark, element::mark_at<Token>(work, row, i));
    }
    (void)largest_so_far(block, mark);
    start = block.shared()[block.size() - 1];
    block.sync();
  }
  return start;
}

/// For each token of the tile, writes the index of the token at which its positions begin,
/// according to token values (eod), to `starts` [last - begin]. Each thread processes a run of
/// adjacent tokens.
template <class Token, class Block>
MILLRACE_HOST_DEVICE inline void find_starts(Block& block, const batch_work& work, std::int64_t row,
                                             std::int64_t begin, std::int64_t last,
                                             std::int32_t* starts) {
  const std::int64_t run = (tile_tokens + block.size() - 1) / block.size();
  const std::int64_t from = begin + run * block.rank();
  const std::int64_t to = from + run < last ? from + run : last;
  std::int32_t start = start_before<Token>(block, work, row, begin);
  std::int32_t mark = 0;
  for (std::int64_t i = from; i < to; ++i) {
    mark = larger(mark, element::mark_at<Token>(work, row, i));
  }
  (void)largest_so_far(block, mark);
  if (block.rank() > 0) start = larger(start, block.shared()[block.rank() - 1]);
  for (std::int64_t i = from; i < to; ++i) {
    starts[i - begin] = start;
    start = larger(start, element::mark_at<Token>(work, row, i));
  }
  block.sync();
}

}  // namespace detail

/// Makes the fields of tokens [tile * tile_tokens, ...) of a row, and the tile's part of the row's
/// boundaries. Every thread of the block calls it. Adjacent threads write adjacent elements.
///
/// @tparam Block  has size(), a power of two, rank(), sync() as __syncthreads, and shared():
///                `shared_integers(size())` integers shared by all threads of the block
template <class Token, class Block>
MILLRACE_HOST_DEVICE inline void make_tile(Block& block, const batch_work& work, std::int64_t row,
                                           std::int64_t tile) {
  const std::int64_t begin = tile * tile_tokens;
  const std::int64_t last = begin + tile_tokens < work.seq_len ? begin + tile_tokens : work.seq_len;
  const bool by_value =
      work.rules.positions == position_rule::after_eod && work.position_ids != nullptr;
  std::int32_t* const starts = block.shared() + block.size();
  if (by_value) detail::find_starts<Token>(block, work, row, begin, last, starts);
  for (std::int64_t i = begin + block.rank(); i < last; i += block.size()) {
    element::put_fields<Token>(work, row, i, by_value ? starts[i - begin] : 0);
  }
  if (work.cu_seqlens == nullptr) return;
  if (row == 0 && tile == 0 && block.rank() == 0) work.cu_seqlens[0] = 0;
  const std::int64_t first = work.boundary_begin[row] + 1;
  for (std::int64_t b = first + tile * block.size() + block.rank();
       b < work.boundary_begin[row + 1]; b += tiles_of(work) * block.size()) {
    element::put_boundary(work, row, b);
  }
}

}  // namespace millrace::loader::cuda
