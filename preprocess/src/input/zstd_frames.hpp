// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include <millrace/io/detail/unique_fd.hpp>

namespace millrace::preprocess {

/// Compressed and decompressed size of a gzip member or a zstd frame.
struct unit_size {
  std::uint64_t compressed_bytes = 0;
  std::uint64_t text_bytes = 0;
};

/// Finds the sizes of zstd frames (RFC 8878). Reads only the frame and block headers.
class zstd_frames {
 public:
  /// size_at() does not examine frames with more text than this: they have too many blocks.
  static constexpr std::uint64_t most_text_bytes = std::uint64_t{1} << 30;

  /// @pre `fd` and `path` outlive this object.
  zstd_frames(const io::unique_fd& fd, const std::filesystem::path& path) : fd_(fd), path_(path) {}

  /// Returns the sizes of the frame, skippable or not, at `offset`. The frame may extend past the
  /// end of the file. Returns an empty optional if no frame begins at `offset`, if a header is
  /// truncated, or if the frame is too large or does not declare its size.
  ///
  /// @throws io_error  the file cannot be read.
  std::optional<unit_size> size_at(std::uint64_t offset) const;

 private:
  std::optional<std::uint64_t> blocks_bytes(std::uint64_t offset) const;

  const io::unique_fd& fd_;
  const std::filesystem::path& path_;
};

}  // namespace millrace::preprocess
