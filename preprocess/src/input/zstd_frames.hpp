// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>

#include <millrace/io/detail/unique_fd.hpp>

namespace millrace::preprocess {

/// What a gzip member or a zstd frame takes, compressed and decompressed.
struct unit_size {
  std::uint64_t compressed_bytes = 0;
  std::uint64_t text_bytes = 0;
};

/// Sizes of zstd frames, from their headers and those of their blocks alone (RFC 8878).
class zstd_frames {
 public:
  /// A frame of more text is not walked through: its blocks would be too many to look at.
  static constexpr std::uint64_t most_text_bytes = std::uint64_t{1} << 30;

  /// Both outlive this.
  zstd_frames(const io::unique_fd& fd, const std::filesystem::path& path) : fd_(fd), path_(path) {}

  /// Of the frame, skippable or not, at this byte. Nothing if there is none, it is cut off in a
  /// header, does not say its size, or is too large. It may end behind the end of the file.
  ///
  /// @throws io_error  the file cannot be read.
  std::optional<unit_size> size_at(std::uint64_t offset) const;

 private:
  std::optional<std::uint64_t> blocks_bytes(std::uint64_t offset) const;

  const io::unique_fd& fd_;
  const std::filesystem::path& path_;
};

}  // namespace millrace::preprocess
