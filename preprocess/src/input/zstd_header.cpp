// SPDX-License-Identifier: Apache-2.0
#include "input/zstd_header.hpp"

#include <array>

#include "input/little_endian.hpp"

namespace millrace::preprocess {
namespace {

// Decodes a window descriptor (RFC 8878, section 3.1.1.1.2). The upper 5 bits are the exponent of a
// power of two; the lower 3 bits add eighths of that power.
std::uint64_t window_of(std::byte descriptor) {
  const auto value = std::to_integer<unsigned>(descriptor);
  const std::uint64_t base = std::uint64_t{1} << (10 + (value >> 3));
  return base + base / 8 * (value & 7);
}

}  // namespace

std::optional<zstd_header> parse_zstd_header(std::span<const std::byte> head) {
  if (head.size() < 5 || little_endian(head.first(4)) != zstd_header::magic) return std::nullopt;
  const auto descriptor = std::to_integer<unsigned>(head[4]);
  const bool one_segment = (descriptor >> 5 & 1) != 0;
  const std::size_t window_size = one_segment ? 0 : 1;
  const std::size_t dictionary_size = std::array<std::size_t, 4>{0, 1, 2, 4}[descriptor & 3];
  const unsigned size_flag = descriptor >> 6;
  const bool has_size = size_flag != 0 || one_segment;
  const std::size_t size_size = has_size ? std::size_t{1} << size_flag : 0;
  const std::size_t size_at = 5 + window_size + dictionary_size;
  zstd_header header;
  header.bytes = size_at + size_size;
  if (head.size() < header.bytes) return std::nullopt;
  header.checksum = (descriptor >> 2 & 1) != 0;
  if (has_size) {
    header.text_bytes = little_endian(head.subspan(size_at, size_size));
    if (size_size == 2) *header.text_bytes += 256;
  }
  header.window_bytes = one_segment ? *header.text_bytes : window_of(head[5]);
  return header;
}

}  // namespace millrace::preprocess
