// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/detail/verify.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/formats/sum.hpp>
#include <millrace/io/file_ops.hpp>

#include "share_blocks.hpp"

namespace millrace::dataset::detail {

/// Checks `size` bytes in blocks of `block_bytes`, each with one call check(begin, end) of a
/// checker. Each thread makes its own checker.
///
/// @param done  bytes that were checked before; `options.progress` gets the sum
/// @throws any exception of a checker: that of the first block that had one
template <class MakeChecker>
void check_blocks(std::uint64_t size, std::uint64_t block_bytes, const verify_options& options,
                  std::uint64_t& done, MakeChecker&& make_checker) {
  const std::uint64_t blocks = size / block_bytes + (size % block_bytes != 0 ? 1 : 0);
  std::mutex mutex;  // guards `done`
  share_blocks(blocks, options.workers, [&] {
    return [&, check = make_checker()](std::uint64_t block) mutable {
      const std::uint64_t begin = block * block_bytes;
      const std::uint64_t end = std::min(begin + block_bytes, size);
      check(begin, end);
      if (!options.progress) return;
      const std::scoped_lock lock(mutex);
      options.progress(done += end - begin);
    };
  });
}

/// Computes the checksums of the blocks of a file, and calls take(block, begin, end, checksum) for
/// each, from several threads at once.
///
/// @param size  size of the file in bytes; other parameters as `check_blocks`
template <class Take>
void checksum_blocks(const std::filesystem::path& path, const io::unique_fd& fd, std::uint64_t size,
                     const verify_options& options, std::uint64_t& done, const Take& take) {
  // A piece stays in the cache of a core between the read and its checksum.
  constexpr std::uint64_t piece_bytes = std::uint64_t{128} << 10;
  check_blocks(size, formats::sum_block_bytes, options, done, [&] {
    return [&, buffer = std::vector<std::byte>(piece_bytes)](std::uint64_t begin,
                                                             std::uint64_t end) mutable {
      std::uint32_t crc = 0;
      for (std::uint64_t at = begin; at < end; at += piece_bytes) {
        const auto piece = std::span(buffer).first(
            static_cast<std::size_t>(std::min<std::uint64_t>(piece_bytes, end - at)));
        const std::size_t read = io::pread_some(fd, piece, at, path);
        if (read < piece.size()) {
          throw format_error(path, at + read,
                             "the file became shorter while it was read: expected " +
                                 std::to_string(size) + " bytes, found " +
                                 std::to_string(at + read));
        }
        crc = formats::crc32c(piece, crc);
      }
      take(static_cast<std::size_t>(begin / formats::sum_block_bytes), begin, end, crc);
    };
  });
}

}  // namespace millrace::dataset::detail
