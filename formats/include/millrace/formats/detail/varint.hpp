// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include <millrace/error.hpp>

namespace millrace::formats {

/// Maximum number of bytes in a varint. A varint is an unsigned LEB128 number: it has seven bits
/// per byte, lowest bits first, and the top bit is set in every byte except the last. Only the
/// shortest encoding is valid.
inline constexpr std::size_t most_varint_bytes = 10;

/// Writes `value` to `out`, which must have room for `most_varint_bytes`.
///
/// @return the position after the varint
inline std::byte* put_varint(std::byte* out, std::uint64_t value) noexcept {
  for (; value >= 0x80; value >>= 7) *out++ = static_cast<std::byte>(value | 0x80);
  *out++ = static_cast<std::byte>(value);
  return out;
}

/// Maps the differences 0, -1, 1, -2, 2 ... to 0, 1, 2, 3, 4 ..., so that a difference near 0
/// becomes a short varint. `difference` is the difference of two numbers modulo 2^64.
constexpr std::uint64_t zigzag(std::uint64_t difference) noexcept {
  return difference << 1 ^ (difference >> 63 != 0 ? ~std::uint64_t{0} : 0);
}
constexpr std::uint64_t from_zigzag(std::uint64_t value) noexcept {
  return value >> 1 ^ ((value & 1) != 0 ? ~std::uint64_t{0} : 0);
}

/// Reads varints from the front of a span, with bounds checks.
class varint_reader {
 public:
  varint_reader() = default;
  /// @param offset  position of the first byte in the file, for messages
  varint_reader(std::span<const std::byte> bytes, std::uint64_t offset) noexcept
      : begin_(bytes.data()), at_(begin_), end_(begin_ + bytes.size()), offset_(offset) {}

  /// Reads the next number. `field` is its name in messages.
  ///
  /// @throws format_error  the bytes end inside the number, it has more than 64 bits, or its
  ///                       encoding is not the shortest.
  std::uint64_t next(const char* field) {
    if (at_ != end_ && *at_ < std::byte{0x80}) return std::to_integer<std::uint64_t>(*at_++);
    return next_long(field);
  }

  /// Position of the next byte in the file.
  std::uint64_t offset() const noexcept {
    return offset_ + static_cast<std::uint64_t>(at_ - begin_);
  }
  bool at_end() const noexcept { return at_ == end_; }

 private:
  std::uint64_t next_long(const char* field);

  const std::byte* begin_ = nullptr;
  const std::byte* at_ = nullptr;
  const std::byte* end_ = nullptr;
  std::uint64_t offset_ = 0;
};

inline std::uint64_t varint_reader::next_long(const char* field) {
  const std::uint64_t start = offset();
  std::uint64_t value = 0;
  for (unsigned shift = 0; at_ != end_; shift += 7) {
    const auto byte = std::to_integer<std::uint64_t>(*at_++);
    if (shift == 63 && byte > 1) throw format_error(start, std::string(field) + " exceeds 64 bits");
    value |= (byte & 0x7F) << shift;
    if (byte >= 0x80) continue;
    if (byte == 0) {  // not the first byte, because next() handles a first byte of 0
      throw format_error(start, std::string(field) + " is encoded in more bytes than it needs");
    }
    return value;
  }
  throw format_error(start, "the group ends inside " + std::string(field));
}

}  // namespace millrace::formats
