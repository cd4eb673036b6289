// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include <millrace/io/detail/unique_fd.hpp>

#include "input/zstd_frames.hpp"

namespace millrace::preprocess {

/// Finds the sizes of gzip members (RFC 1952). The header of a BGZF (blocked gzip) member declares
/// the size of the member. Any other member ends where the next member begins. This class searches
/// for that place: a valid header, preceded by a plausible size field and followed by data that can
/// be decompressed.
class gzip_members {
 public:
  /// Limits of the search for the next member. `most_compressed_bytes` is the largest distance
  /// between the starts of two members. To prove that a candidate is a member, `proof_bytes` bytes
  /// of its text are decompressed. Random bytes fail much earlier, after a few deflate codes.
  static constexpr std::uint64_t most_compressed_bytes = std::uint64_t{64} << 20;
  static constexpr std::size_t proof_bytes = std::size_t{4} << 10;

  /// @pre `fd` and `path` outlive this object.
  gzip_members(const io::unique_fd& fd, std::uint64_t file_size, const std::filesystem::path& path)
      : fd_(fd), file_size_(file_size), path_(path) {}

  /// Returns the sizes of the member at `offset`. If only zeros (padding) follow the member up to
  /// the end of the file, they count as part of the member. Returns an empty optional if no member
  /// begins at `offset` or its end is not found.
  ///
  /// @throws io_error  the file cannot be read.
  std::optional<unit_size> size_at(std::uint64_t offset);

 private:
  struct trial {
    bool sound = false;  ///< no damage was found
    bool ended = false;  ///< the member's end was reached, so `size` is final
    unit_size size = {};
  };

  std::span<const std::byte> window(std::uint64_t offset, std::size_t least, std::size_t most);
  std::span<const std::byte> window(std::uint64_t offset, std::size_t size) {
    return window(offset, size, size);
  }
  std::optional<std::uint64_t> told_end(std::uint64_t offset);
  std::optional<unit_size> search_end(std::uint64_t offset);
  std::optional<unit_size> last_member(std::uint64_t offset);
  bool padding_from(std::uint64_t offset);
  std::uint64_t text_bytes_before(std::uint64_t end);
  bool may_reach(std::uint64_t offset, std::uint64_t end);
  trial decompress(std::uint64_t offset, std::uint64_t most_text_bytes);

  const io::unique_fd& fd_;
  std::uint64_t file_size_;
  const std::filesystem::path& path_;
  std::vector<std::byte> buffer_;  // bytes of the file, starting at buffer_offset_
  std::uint64_t buffer_offset_ = 0;
};

}  // namespace millrace::preprocess
