// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/hex.hpp>
#include <millrace/formats/sum.hpp>

namespace millrace::formats {

/// Holds the bytes of a file against the checksums that its P.sum has of them, as they come by,
/// front to back. For one thread.
class sum_check {
 public:
  /// @param expected  one a block; what they lie in outlives this
  /// @param size      bytes that the file had when they were written
  /// @pre expected.size() == sum_block_count(size)
  sum_check(unaligned_span<std::uint32_t> expected, std::uint64_t size)
      : expected_(expected), size_(size) {}

  /// @pre no more than `size` come in all
  /// @throws format_error  a block that they complete is not what it was when it was written; at
  /// its
  ///                       first byte, without a path.
  void add(std::span<const std::byte> bytes) {
    blocks_.add(bytes, completed_);
    compare();
  }
  /// Call it when all bytes have come.
  void finish() {
    blocks_.finish(completed_);
    compare();
  }

 private:
  void compare() {
    for (const std::uint32_t found : completed_) {
      const std::uint64_t begin = std::uint64_t{compared_} * sum_block_bytes;
      const std::uint32_t wanted = expected_[compared_++];
      if (found == wanted) continue;
      const std::uint64_t bytes = std::min<std::uint64_t>(sum_block_bytes, size_ - begin);
      throw format_error(begin, "the " + std::to_string(bytes) + " bytes up to byte " +
                                    std::to_string(begin + bytes) +
                                    " are not those that were written: their checksum is " +
                                    hex(found) + ", expected " + hex(wanted));
    }
    completed_.clear();
  }

  unaligned_span<std::uint32_t> expected_;
  std::uint64_t size_;
  block_checksums blocks_;
  std::size_t compared_ = 0;
  std::vector<std::uint32_t> completed_;  // reused
};

}  // namespace millrace::formats
