// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <millrace/loader/cuda/detail/batch_tile.hpp>

/// Runs the work of the kernels on one CPU thread, for tests. They compare the kernels with this
/// code, and their substitutes for the CUDA runtime call it instead of launching kernels.
namespace millrace::loader::cuda {

/// A block with one thread.
class lone_block {
 public:
  static constexpr std::int32_t size() noexcept { return 1; }
  static constexpr std::int32_t rank() noexcept { return 0; }
  static void sync() noexcept {}
  static std::int32_t largest(std::int32_t value) noexcept { return value; }
  static void set_bits(std::uint32_t* word, std::uint32_t bits) noexcept { *word |= bits; }
  tile_memory& memory() noexcept { return memory_; }

 private:
  tile_memory memory_ = {};
};

/// Calls `each(row, tile)` for every block of a kernel.
template <class Each>
void for_each_tile(const batch_work& work, const Each& each) {
  for (std::int32_t row = 0; row < work.rows; ++row) {
    for (std::int32_t tile = 0; tile < tiles_of(work); ++tile) each(row, tile);
  }
}

/// Makes the whole micro-batch with the threads of one block; the kernels use many blocks. Every
/// thread of the block calls this function.
template <class Token, class Id, class Block>
void make_batch(Block& block, const batch_work& work) {
  if (needs_marks(work)) {
    for_each_tile(work, [&](std::int32_t row, std::int32_t tile) {
      mark_tile<Token>(block, work, row, tile);
      block.sync();  // the next tile uses the same memory
    });
  }
  for_each_tile(work, [&](std::int32_t row, std::int32_t tile) {
    make_tile<Token, Id>(block, work, row, tile);
    block.sync();
  });
}

/// Calls `make_batch` with the token and id types of the batch.
template <class Block>
void make_batch(Block& block, const batch_work& work) {
  const bool narrow_ids = work.ids == id_width::i32;
  if (work.narrow && narrow_ids) return make_batch<std::uint16_t, std::int32_t>(block, work);
  if (work.narrow) return make_batch<std::uint16_t, std::int64_t>(block, work);
  if (narrow_ids) return make_batch<std::int32_t, std::int32_t>(block, work);
  make_batch<std::int32_t, std::int64_t>(block, work);
}

/// Makes the whole micro-batch on the calling thread.
inline void make_batch(const batch_work& work) {
  lone_block block;
  make_batch(block, work);
}

}  // namespace millrace::loader::cuda
