// SPDX-License-Identifier: Apache-2.0
#include "input/zstd_frames.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <span>

#include <fmt/format.h>

#include <millrace/error.hpp>
#include <millrace/io/file_ops.hpp>

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

// Returns the total size of a frame's blocks. Three bytes before each block hold its type, its size
// and whether it is the last block (RFC 8878, section 3.1.1.2).
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

namespace {

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

std::uint64_t in_mebibytes(std::uint64_t bytes) {
  return bytes / mebibyte + (bytes % mebibyte != 0 ? 1 : 0);
}

}  // namespace

std::optional<zstd_window> zstd_window_of(std::span<const std::byte> head) {
  const auto header = parse_zstd_header(head);
  if (!header) return std::nullopt;
  const std::uint64_t window = header->window_bytes;
  return zstd_window{window, std::min(window, header->text_bytes.value_or(window))};
}

std::string zstd_window_refusal(const zstd_window& window, std::uint64_t most_bytes) {
  if (window.memory_bytes <= most_bytes || window.window_bytes > most_zstd_window_bytes) return {};
  return fmt::format(
      "a zstd frame needs a window of {} MB, more than the {} MB allowed; pass --zstd-memory {} if "
      "there is enough memory, or recompress the file with a smaller zstd --long",
      in_mebibytes(window.memory_bytes), most_bytes / mebibyte, in_mebibytes(window.memory_bytes));
}

std::string zstd_window_damage(const zstd_window& window) {
  return fmt::format("a frame declares a window of {} MB, more than the {} MB of zstd --long=31",
                     in_mebibytes(window.window_bytes), in_mebibytes(most_zstd_window_bytes));
}

std::string zstd_memory_refusal(const zstd_window& window) {
  return fmt::format(
      "a zstd frame needs a window of {} MB, which the system cannot allocate; free memory or "
      "raise its limit (ulimit -v), or recompress the file with a smaller zstd --long",
      in_mebibytes(window.memory_bytes));
}

void expect_zstd_window(const zstd_window& window, std::uint64_t most_bytes,
                        std::string_view name) {
  const std::string refusal = zstd_window_refusal(window, most_bytes);
  if (!refusal.empty()) throw config_error(fmt::format("{}: {}", name, refusal));
}

}  // namespace millrace::preprocess
