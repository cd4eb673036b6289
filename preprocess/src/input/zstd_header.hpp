// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace millrace::preprocess {

/// The header of a zstd frame: RFC 8878, section 3.1.1.1.
struct zstd_header {
  std::size_t bytes = 0;  ///< size of the header, with the magic number
  std::uint64_t window_bytes = 0;
  std::optional<std::uint64_t> text_bytes;  ///< size of the text, if it is declared
  bool checksum = false;                    ///< a checksum follows the blocks

  static constexpr std::uint32_t magic = 0xFD2FB528;
  static constexpr std::size_t most_bytes = 4 + 1 + 1 + 4 + 8;
};

/// @return nothing if `head` is not the start of a frame with text (a skippable frame has none), or
///         if the header is truncated.
std::optional<zstd_header> parse_zstd_header(std::span<const std::byte> head);

}  // namespace millrace::preprocess
