// SPDX-License-Identifier: Apache-2.0
#include "input/zstd_frames.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include <millrace/io/file_ops.hpp>

#include "input/little_endian.hpp"
#include "input/zstd_header.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::uint32_t skippable_magic = 0x184D2A50;  // the first of sixteen magic numbers

}  // namespace

std::optional<unit_size> zstd_frames::size_at(std::uint64_t offset) const {
  std::array<std::byte, zstd_header::most_bytes> buffer{};
  const std::size_t size = io::pread_some(fd_, buffer, offset, path_);
  const auto head = std::span<const std::byte>(buffer).first(size);
  if (head.size() < 8) return std::nullopt;
  const auto magic = static_cast<std::uint32_t>(little_endian(head.first(4)));
  if ((magic & 0xFFFFFFF0U) == skippable_magic) {
    return unit_size{8 + little_endian(head.subspan(4, 4)), 0};
  }
  const auto header = parse_zstd_header(head);
  if (!header || !header->text_bytes || *header->text_bytes > most_text_bytes) return std::nullopt;
  const auto blocks = blocks_bytes(offset + header->bytes);
  if (!blocks) return std::nullopt;
  return unit_size{header->bytes + *blocks + (header->checksum ? 4U : 0U), *header->text_bytes};
}

// Returns the total size of a frame's blocks. RFC 8878, section 3.1.1.2: the three bytes before
// each block hold its type, its size and whether it is the last one.
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
