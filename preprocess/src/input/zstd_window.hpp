// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

/// How much memory it takes to decompress a zstd frame: its window, the text that later text may
/// refer back to.
namespace millrace::preprocess {

/// `zstd --long=31`: the largest window that libzstd decompresses.
inline constexpr std::uint64_t most_zstd_window_bytes = std::uint64_t{2} << 30;

/// What RFC 8878 asks every decoder to support, so that no limit is below it.
inline constexpr std::uint64_t least_zstd_window_bytes = std::uint64_t{8} << 20;

struct zstd_window {
  std::uint64_t window_bytes = 0;  ///< as the frame declares it
  std::uint64_t memory_bytes = 0;  ///< less where the frame declares a text that is shorter
};

/// @param head  of a frame: zstd_header::most_bytes, or what there is of them
/// @return nothing where it begins no frame with text, or the header is cut off.
std::optional<zstd_window> zstd_window_of(std::span<const std::byte> head);

/// Why a frame is not decompressed, and what to do about it; empty if it is, and where the window
/// is zstd_window_damage().
///
/// @param most_bytes  memory that a window may take
std::string zstd_window_refusal(const zstd_window& window, std::uint64_t most_bytes);

/// What is wrong with a window above most_zstd_window_bytes, which no program of zstd makes.
std::string zstd_window_damage(const zstd_window& window);

/// As zstd_window_refusal() where the limit allows the window, but the memory for it is not there.
std::string zstd_memory_refusal(const zstd_window& window);

/// @param name  of the file; the sentence begins with it
/// @throws config_error  zstd_window_refusal()
void expect_zstd_window(const zstd_window& window, std::uint64_t most_bytes, std::string_view name);

}  // namespace millrace::preprocess
