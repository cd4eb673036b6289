// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/hex.hpp>
#include <millrace/formats/sum.hpp>

namespace millrace::formats {

/// Compares the bytes of a file with the checksums in its `.sum`. The caller passes the bytes in
/// pieces of any size, front to back. Not thread-safe.
class sum_check {
 public:
  /// @param expected  one checksum per block; the bytes of this span must outlive this object
  /// @param size      bytes that the file had when the checksums were written
  /// @pre expected.size() == sum_block_count(size)
  sum_check(unaligned_span<std::uint32_t> expected, std::uint64_t size)
      : expected_(expected), size_(size) {}

  /// Takes the next bytes. Compares each block that these bytes complete.
  ///
  /// @pre all calls together pass at most `size` bytes
  /// @throws format_error  a block differs from what was written. The error has the offset of the
  ///                       block's first byte, but no path.
  void add(std::span<const std::byte> bytes) {
    blocks_.add(bytes, completed_);
    compare();
  }
  /// Compares the last block if it is short. Call this function after all bytes were added.
  ///
  /// @throws format_error  as `add`
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
                                    " differ from those that were written: their checksum is " +
                                    hex(found) + ", expected " + hex(wanted));
    }
    completed_.clear();
  }

  unaligned_span<std::uint32_t> expected_;
  std::uint64_t size_;
  block_checksums blocks_;
  std::size_t compared_ = 0;
  std::vector<std::uint32_t> completed_;  // reused by all calls
};

}  // namespace millrace::formats
