// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// How much memory it takes to decompress a zstd frame. Its window is the text that later text may
/// refer to.
namespace millrace::preprocess {

/// `zstd --long=31`: the largest window that libzstd decompresses.
inline constexpr std::uint64_t most_zstd_window_bytes = std::uint64_t{2} << 30;

/// The smallest limit. RFC 8878 asks every decoder to support windows up to this size.
inline constexpr std::uint64_t least_zstd_window_bytes = std::uint64_t{8} << 20;

struct zstd_window {
  std::uint64_t window_bytes = 0;  ///< as the frame declares it
  std::uint64_t memory_bytes = 0;  ///< less if the frame declares a text shorter than the window
};

/// @param head  the first zstd_header::most_bytes of a frame, or fewer if the file ends before
/// @return nothing if `head` does not begin a frame with text, or its header is incomplete.
std::optional<zstd_window> zstd_window_of(std::span<const std::byte> head);

/// The message that refuses a frame: the reason, and what to do about it. Empty if the frame is not
/// refused, or if zstd_window_damage() is what is wrong with it.
///
/// @param most_bytes  memory that a window may take
std::string zstd_window_refusal(const zstd_window& window, std::uint64_t most_bytes);

/// What is wrong with a window above most_zstd_window_bytes. The zstd programs never make one.
std::string zstd_window_damage(const zstd_window& window);

/// The message that refuses a frame whose window is within the limit, but cannot be allocated.
std::string zstd_memory_refusal(const zstd_window& window);

/// @param name  of the file; the sentence begins with it
/// @throws config_error  zstd_window_refusal()
void expect_zstd_window(const zstd_window& window, std::uint64_t most_bytes, std::string_view name);

}  // namespace millrace::preprocess
