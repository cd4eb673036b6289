// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// The memory that it takes to decompress a zstd frame. The window of a frame is the earlier text
/// that the decoder must keep, because later data may refer to it.
namespace millrace::preprocess {

/// The largest window that libzstd decompresses; `zstd --long=31` creates it.
inline constexpr std::uint64_t most_zstd_window_bytes = std::uint64_t{2} << 30;

/// The smallest limit that a user may set. RFC 8878 recommends that every decoder supports windows
/// up to this size.
inline constexpr std::uint64_t least_zstd_window_bytes = std::uint64_t{8} << 20;

struct zstd_window {
  std::uint64_t window_bytes = 0;  ///< size that the frame declares
  std::uint64_t memory_bytes = 0;  ///< smaller if the frame declares a text shorter than the window
};

/// @param head  the first zstd_header::most_bytes bytes of a frame, or all bytes of a shorter file
/// @return nothing if `head` is not the start of a frame with text, or its header is incomplete.
std::optional<zstd_window> zstd_window_of(std::span<const std::byte> head);

/// Returns the message that refuses a frame: the reason, and what the user can do. Returns an empty
/// string if the frame is not refused, or if its window is so large that zstd_window_damage()
/// describes the problem.
///
/// @param most_bytes  the most memory that a window may take
std::string zstd_window_refusal(const zstd_window& window, std::uint64_t most_bytes);

/// The message for a window above most_zstd_window_bytes. The zstd programs never create one, so
/// the data must be damaged.
std::string zstd_window_damage(const zstd_window& window);

/// The message that refuses a frame whose window is within the limit, but cannot be allocated.
std::string zstd_memory_refusal(const zstd_window& window);

/// Throws if the window of a frame needs too much memory.
///
/// @param name  name of the file; the message begins with it
/// @throws config_error  the message is zstd_window_refusal().
void expect_zstd_window(const zstd_window& window, std::uint64_t most_bytes, std::string_view name);

}  // namespace millrace::preprocess
