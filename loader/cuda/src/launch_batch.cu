// SPDX-License-Identifier: Apache-2.0
#include "launch_batch.hpp"

#include <cstdint>

#include <millrace/loader/cuda/detail/batch_tile.hpp>

namespace millrace::loader::cuda {
namespace {

constexpr int block_threads = 256;
// Blocks per multiprocessor; six allow 42 registers per thread. Without this limit, ptxas on sm_90
// spills registers to fit eight. A multiprocessor of Turing has 1,024 threads.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
constexpr int least_blocks = 4;
#else
constexpr int least_blocks = 6;
#endif

class device_block {
 public:
  __device__ explicit device_block(std::int32_t* shared) : shared_(shared) {}
  static __device__ std::int64_t size() { return block_threads; }
  static __device__ std::int64_t rank() { return threadIdx.x; }
  static __device__ void sync() { __syncthreads(); }
  __device__ std::int32_t* shared() { return shared_; }

 private:
  std::int32_t* shared_;
};

// One block per tile. The grid is one-dimensional because only its x dimension is large enough for
// any number of rows.
template <class Token>
__global__ void __launch_bounds__(block_threads, least_blocks) make_batch_kernel(const batch_work work) {
  __shared__ std::int32_t shared[shared_integers(block_threads)];
  device_block block(shared);
  const std::int64_t tiles = tiles_of(work);
  make_tile<Token>(block, work, blockIdx.x / tiles, blockIdx.x % tiles);
}

}  // namespace

int launch_batch(const batch_work& work, stream on) {
  const auto blocks = static_cast<unsigned>(work.rows * tiles_of(work));
  if (work.narrow) {
    make_batch_kernel<std::uint16_t><<<blocks, block_threads, 0, on>>>(work);
  } else {
    make_batch_kernel<std::int32_t><<<blocks, block_threads, 0, on>>>(work);
  }
  return cudaGetLastError();
}

int find_kernels() {
  cudaFuncAttributes found;
  const cudaError_t narrow = cudaFuncGetAttributes(&found, make_batch_kernel<std::uint16_t>);
  return narrow != cudaSuccess ? narrow
                               : cudaFuncGetAttributes(&found, make_batch_kernel<std::int32_t>);
}

}  // namespace millrace::loader::cuda
