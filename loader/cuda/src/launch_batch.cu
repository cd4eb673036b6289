// SPDX-License-Identifier: Apache-2.0
#include "launch_batch.hpp"

#include <algorithm>
#include <cstdint>

#include <millrace/loader/cuda/detail/batch_tile.hpp>

namespace millrace::loader::cuda {
namespace {

constexpr int block_threads = 256;
constexpr int warps = block_threads / 32;
// The least number of blocks per multiprocessor. Four blocks leave 64 registers for each thread.
// Without this limit, ptxas on sm_90 spills registers to memory so that eight blocks fit. On sm_75,
// a multiprocessor has threads for only four blocks.
constexpr int least_blocks = 4;

class device_block {
 public:
  struct shared_memory {
    tile_memory tile;
    std::int32_t largest[2][warps];
  };

  __device__ explicit device_block(shared_memory& shared) : shared_(&shared) {}
  static constexpr __device__ std::int32_t size() { return block_threads; }
  static __device__ std::int32_t rank() { return static_cast<std::int32_t>(threadIdx.x); }
  static __device__ void sync() { __syncthreads(); }
  static __device__ void set_bits(std::uint32_t* word, std::uint32_t bits) { atomicOr(word, bits); }
  __device__ tile_memory& memory() { return shared_->tile; }

  // Calls alternate between two arrays, so each call needs only one barrier. When a thread writes
  // to an array again, it has passed the barrier of the call in between. At that barrier, all
  // threads had finished reading the array.
  __device__ std::int32_t largest(std::int32_t value) {
    constexpr unsigned all = 0xFFFFFFFF;
    for (int distance = 16; distance > 0; distance /= 2) {
      value = max(value, __shfl_xor_sync(all, value, distance));
    }
    std::int32_t* const values = shared_->largest[turn_];
    turn_ = 1 - turn_;
    if (threadIdx.x % 32 == 0) values[threadIdx.x / 32] = value;
    __syncthreads();
    for (int warp = 0; warp < warps; ++warp) value = max(value, values[warp]);
    return value;
  }

 private:
  shared_memory* shared_;
  int turn_ = 0;
};

// One block per tile. The grid is one-dimensional because only its x dimension is large enough for
// any number of rows. There are fewer than 2^31 blocks, so a 32-bit division finds the row.
template <class Token, class Id>
__global__ void __launch_bounds__(block_threads, least_blocks)
    make_batch_kernel(const batch_work work, unsigned tiles) {
  __shared__ device_block::shared_memory shared;
  device_block block(shared);
  make_tile<Token, Id>(block, work, static_cast<std::int32_t>(blockIdx.x / tiles),
                       static_cast<std::int32_t>(blockIdx.x % tiles));
}

template <class Token>
__global__ void __launch_bounds__(block_threads, least_blocks)
    mark_eods_kernel(const batch_work work, unsigned tiles) {
  __shared__ device_block::shared_memory shared;
  device_block block(shared);
  mark_tile<Token>(block, work, static_cast<std::int32_t>(blockIdx.x / tiles),
                   static_cast<std::int32_t>(blockIdx.x % tiles));
}

// All blocks with the same `blockIdx.y` copy one array, so no array waits for another.
__global__ void __launch_bounds__(block_threads) copy_arrays_kernel(const array_copies copies) {
  const auto rank = static_cast<std::int64_t>(threadIdx.x);
  copy_share(copies.arrays[blockIdx.y], std::int64_t{blockIdx.x} * block_threads + rank,
             std::int64_t{gridDim.x} * block_threads);
}

template <class Token, class Id>
int launch(const batch_work& work, stream on) {
  const auto tiles = static_cast<unsigned>(tiles_of(work));
  const auto blocks = static_cast<unsigned>(work.rows) * tiles;
  if (needs_marks(work)) mark_eods_kernel<Token><<<blocks, block_threads, 0, on>>>(work, tiles);
  make_batch_kernel<Token, Id><<<blocks, block_threads, 0, on>>>(work, tiles);
  return cudaGetLastError();
}

template <class Token>
int launch(const batch_work& work, stream on) {
  return work.ids == id_width::i32 ? launch<Token, std::int32_t>(work, on)
                                   : launch<Token, std::int64_t>(work, on);
}

template <class... Kernels>
int find(Kernels... kernels) {
  cudaFuncAttributes found;
  cudaError_t code = cudaSuccess;
  ((code = code == cudaSuccess ? cudaFuncGetAttributes(&found, kernels) : code), ...);
  return code;
}

}  // namespace

int launch_batch(const batch_work& work, stream on) {
  return work.narrow ? launch<std::uint16_t>(work, on) : launch<std::int32_t>(work, on);
}

int launch_copies(const array_copies& copies, stream on) {
  std::int64_t largest = 0;
  for (int i = 0; i < copies.count; ++i) largest = std::max(largest, copies.arrays[i].bytes);
  if (largest == 0) return cudaSuccess;
  // Takes enough blocks for one 16-byte access per thread, but at most `most_blocks`, which already
  // fill the device.
  constexpr std::int64_t block_bytes = 16 * block_threads;
  constexpr std::int64_t most_blocks = 1024;
  const std::int64_t blocks = std::min((largest + block_bytes - 1) / block_bytes, most_blocks);
  const dim3 grid(static_cast<unsigned>(blocks), static_cast<unsigned>(copies.count));
  copy_arrays_kernel<<<grid, block_threads, 0, on>>>(copies);
  return cudaGetLastError();
}

int find_kernels() {
  return find(copy_arrays_kernel, mark_eods_kernel<std::uint16_t>, mark_eods_kernel<std::int32_t>,
              make_batch_kernel<std::uint16_t, std::int32_t>,
              make_batch_kernel<std::uint16_t, std::int64_t>,
              make_batch_kernel<std::int32_t, std::int32_t>,
              make_batch_kernel<std::int32_t, std::int64_t>);
}

}  // namespace millrace::loader::cuda
