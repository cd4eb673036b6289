// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/formats/sum.hpp>

namespace millrace::preprocess {

/// Holds the bytes of a file against the checksums that its P.sum has of them, as they come by,
/// front to back. For one thread.
class sum_check {
 public:
  /// @param expected  outlives this
  /// @param path      of the file, for messages
  sum_check(formats::unaligned_span<std::uint32_t> expected, std::filesystem::path path)
      : expected_(expected), path_(std::move(path)) {}

  /// @throws format_error  a block that they complete is not what it was when it was written.
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
      const std::uint32_t wanted = expected_[compared_];
      if (found != wanted) {
        throw format_error(path_, compared_ * formats::sum_block_bytes,
                           fmt::format("the block that begins here has the CRC-32C {:08x}, but "
                                       "{:08x} in its .sum: one of the two was changed or damaged",
                                       found, wanted));
      }
      ++compared_;
    }
    completed_.clear();
  }

  formats::unaligned_span<std::uint32_t> expected_;
  std::filesystem::path path_;
  formats::block_checksums blocks_;
  std::size_t compared_ = 0;
  std::vector<std::uint32_t> completed_;  // reused
};

}  // namespace millrace::preprocess
