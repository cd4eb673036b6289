// SPDX-License-Identifier: Apache-2.0
#include "input/zstd_frames.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include <millrace/io/file_ops.hpp>

namespace millrace::preprocess {
namespace {

constexpr std::uint32_t frame_magic = 0xFD2FB528;
constexpr std::uint32_t skippable_magic = 0x184D2A50;  // and the fifteen after it
constexpr std::size_t most_header_bytes = 4 + 1 + 1 + 4 + 8;

std::uint64_t little_endian(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  }
  return value;
}

struct frame_header {
  std::size_t bytes = 0;  // with the magic number
  std::uint64_t text_bytes = 0;
  bool checksum = false;
};

// Section 3.1.1.1. Nothing where the size of the text is not told, or the header is cut off.
std::optional<frame_header> parse_header(std::span<const std::byte> head) {
  if (head.size() < 5) return std::nullopt;
  const auto descriptor = std::to_integer<unsigned>(head[4]);
  const bool one_segment = (descriptor >> 5 & 1) != 0;
  const std::size_t window_bytes = one_segment ? 0 : 1;
  const std::size_t dictionary_bytes = std::array<std::size_t, 4>{0, 1, 2, 4}[descriptor & 3];
  const unsigned size_flag = descriptor >> 6;
  if (size_flag == 0 && !one_segment) return std::nullopt;
  const std::size_t size_bytes = std::size_t{1} << size_flag;
  const std::size_t size_at = 5 + window_bytes + dictionary_bytes;
  if (head.size() < size_at + size_bytes) return std::nullopt;
  frame_header header;
  header.bytes = size_at + size_bytes;
  header.text_bytes = little_endian(head.subspan(size_at, size_bytes));
  if (size_bytes == 2) header.text_bytes += 256;
  header.checksum = (descriptor >> 2 & 1) != 0;
  return header;
}

}  // namespace

std::optional<unit_size> zstd_frames::size_at(std::uint64_t offset) const {
  std::array<std::byte, most_header_bytes> buffer{};
  const std::size_t size = io::pread_some(fd_, buffer, offset, path_);
  const auto head = std::span<const std::byte>(buffer).first(size);
  if (head.size() < 8) return std::nullopt;
  const auto magic = static_cast<std::uint32_t>(little_endian(head.first(4)));
  if ((magic & 0xFFFFFFF0U) == skippable_magic) {
    return unit_size{8 + little_endian(head.subspan(4, 4)), 0};
  }
  if (magic != frame_magic) return std::nullopt;
  const auto header = parse_header(head);
  if (!header || header->text_bytes > most_text_bytes) return std::nullopt;
  const auto blocks = blocks_bytes(offset + header->bytes);
  if (!blocks) return std::nullopt;
  return unit_size{header->bytes + *blocks + (header->checksum ? 4U : 0U), header->text_bytes};
}

// Section 3.1.1.2: three bytes before each block tell its kind and size, and whether it is the
// last.
std::optional<std::uint64_t> zstd_frames::blocks_bytes(std::uint64_t offset) const {
  for (std::uint64_t at = offset;;) {
    std::array<std::byte, 3> header{};
    if (io::pread_some(fd_, header, at, path_) != header.size()) return std::nullopt;
    const std::uint64_t value = little_endian(header);
    const std::uint64_t kind = value >> 1 & 3;
    if (kind == 3) return std::nullopt;  // reserved
    at += 3 + (kind == 1 ? 1 : value >> 3);
    if ((value & 1) != 0) return at - offset;
  }
}

}  // namespace millrace::preprocess
