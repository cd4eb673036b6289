// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include <millrace/loader/cuda/detail/batch_tile.hpp>

/// Runs the kernel on one CPU thread: as the reference for tests, and as the kernel that a runtime
/// without a device launches.
namespace millrace::loader::cuda {

/// A block of one thread.
class lone_block {
 public:
  static constexpr std::int64_t size() noexcept { return 1; }
  static constexpr std::int64_t rank() noexcept { return 0; }
  static void sync() noexcept {}
  std::int32_t* shared() noexcept { return shared_; }

 private:
  std::int32_t shared_[shared_integers(1)] = {};
};

/// Makes the whole micro-batch on the calling thread, as one kernel launch does.
inline void make_batch(const batch_work& work) {
  lone_block block;
  for (std::int64_t row = 0; row < work.rows; ++row) {
    for (std::int64_t tile = 0; tile < tiles_of(work); ++tile) {
      if (work.narrow) {
        make_tile<std::uint16_t>(block, work, row, tile);
      } else {
        make_tile<std::int32_t>(block, work, row, tile);
      }
    }
  }
}

}  // namespace millrace::loader::cuda
