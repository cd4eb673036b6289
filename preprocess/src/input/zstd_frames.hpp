// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <millrace/io/detail/unique_fd.hpp>

namespace millrace::preprocess {

/// The header of a zstd frame: RFC 8878, section 3.1.1.1.
struct zstd_header {
  std::size_t bytes = 0;  ///< size of the header, including the magic number
  std::uint64_t window_bytes = 0;
  std::optional<std::uint64_t> text_bytes;  ///< size of the text, if it is declared
  bool checksum = false;                    ///< a checksum follows the blocks

  static constexpr std::uint32_t magic = 0xFD2FB528;
  static constexpr std::size_t most_bytes = 4 + 1 + 1 + 4 + 8;
};

/// @return an empty optional if the header is truncated, or if `head` is not the start of a frame
///         with text (a skippable frame has no text).
std::optional<zstd_header> parse_zstd_header(std::span<const std::byte> head);

/// Compressed and decompressed size of a gzip member or a zstd frame.
struct unit_size {
  std::uint64_t compressed_bytes = 0;
  std::uint64_t text_bytes = 0;
};

/// Finds the sizes of zstd frames (RFC 8878). Reads only the frame and block headers.
class zstd_frames {
 public:
  /// size_at() does not examine frames with more text than this, because they have too many blocks.
  static constexpr std::uint64_t most_text_bytes = std::uint64_t{1} << 30;

  /// @pre `fd` and `path` outlive this object.
  zstd_frames(const io::unique_fd& fd, const std::filesystem::path& path) : fd_(fd), path_(path) {}

  /// Returns the sizes of the frame at `offset`, which may be a skippable frame. The frame may
  /// extend past the end of the file. Returns an empty optional if no frame begins at `offset`, if
  /// a header is truncated, or if the frame is too large or does not declare its size.
  ///
  /// @throws io_error  the file cannot be read.
  std::optional<unit_size> size_at(std::uint64_t offset) const;

 private:
  std::optional<std::uint64_t> blocks_bytes(std::uint64_t offset) const;

  const io::unique_fd& fd_;
  const std::filesystem::path& path_;
};

/// The rest of this file is about the memory that decompressing a zstd frame takes. The window of a
/// frame is the earlier text that the decoder must keep, because later data may refer to it.

/// The largest window that libzstd decompresses; `zstd --long=31` creates it.
inline constexpr std::uint64_t most_zstd_window_bytes = std::uint64_t{2} << 30;

/// The smallest limit for windows that a user may set. RFC 8878 recommends that every decoder
/// support windows up to this size.
inline constexpr std::uint64_t least_zstd_window_bytes = std::uint64_t{8} << 20;

struct zstd_window {
  std::uint64_t window_bytes = 0;  ///< size that the frame declares
  std::uint64_t memory_bytes = 0;  ///< memory needed; less than the window for a short text
};

/// @param head  the first zstd_header::most_bytes bytes of a frame, or all bytes of a shorter file
/// @return an empty optional if the header is truncated, or if `head` is not the start of a frame
/// with text.
std::optional<zstd_window> zstd_window_of(std::span<const std::byte> head);

/// Returns the message that refuses a frame and says what the user can do. Returns an empty string
/// if the frame is not refused, or if its window is so large that zstd_window_damage() describes
/// the problem instead.
///
/// @param most_bytes  the most memory that a window may take
std::string zstd_window_refusal(const zstd_window& window, std::uint64_t most_bytes);

/// The message for a window above most_zstd_window_bytes. The zstd programs never create such a
/// window, so the data must be damaged.
std::string zstd_window_damage(const zstd_window& window);

/// The message that refuses a frame whose window is within the limit, but cannot be allocated.
std::string zstd_memory_refusal(const zstd_window& window);

/// Throws if the window of a frame needs too much memory.
///
/// @param name  name of the file; the message begins with it
/// @throws config_error  the message is zstd_window_refusal().
void expect_zstd_window(const zstd_window& window, std::uint64_t most_bytes, std::string_view name);

/// Decodes a little-endian number of at most eight bytes.
constexpr std::uint64_t little_endian(std::span<const std::byte> bytes) noexcept {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return value;
}

}  // namespace millrace::preprocess
