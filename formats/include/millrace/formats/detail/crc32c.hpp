// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include <millrace/formats/detail/byte_reader.hpp>
#include <millrace/formats/detail/crc32c_instructions.hpp>

namespace millrace::formats {

/// CRC-32C (Castagnoli; RFC 3720, iSCSI) of `bytes`, in the usual form: the register is inverted at
/// the start and at the end, and the CRC of no bytes is 0.
///
/// @param before  the CRC of the bytes that precede `bytes`; the result is the CRC of both together
std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;

/// The CRC of two concatenated byte strings, computed from their CRCs. Takes one multiplication for
/// each hexadecimal digit of `second_bytes` that is not 0.
///
/// @param second_bytes  size of the second string in bytes
std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second,
                             std::uint64_t second_bytes) noexcept;

/// Same as the functions above, but without the processor's CRC instructions, at about a tenth of
/// the speed. Used on processors that lack these instructions. The tests compare the fast functions
/// with these portable functions.
std::uint32_t crc32c_portable(std::span<const std::byte> bytes, std::uint32_t before = 0) noexcept;
std::uint32_t crc32c_combine_portable(std::uint32_t first, std::uint32_t second,
                                      std::uint64_t second_bytes) noexcept;

namespace detail {

// Polynomials are reflected: bit 31 is the coefficient of x^0, and bit 0 is the coefficient of
// x^31.
inline constexpr std::uint32_t crc32c_polynomial = 0x82F63B78;
inline constexpr std::uint32_t crc32c_one = 0x80000000;

constexpr std::uint32_t crc32c_times_x(std::uint32_t a) noexcept {
  return a >> 1 ^ (crc32c_polynomial & (0 - (a & 1)));
}

constexpr std::uint32_t crc32c_multiply(std::uint32_t a, std::uint32_t b) noexcept {
  std::uint32_t product = 0;
  for (; a != 0; a <<= 1, b = crc32c_times_x(b)) product ^= b & (0 - (a >> 31));
  return product;
}

/// crc32c_powers[i][d] is x^(8 * d * 16^i), the factor that shifts a polynomial by d * 16^i bytes.
inline constexpr auto crc32c_powers = [] {
  std::array<std::array<std::uint32_t, 16>, 16> powers{};
  std::uint32_t unit = crc32c_one;
  for (int i = 0; i < 8; ++i) unit = crc32c_times_x(unit);
  for (auto& digits : powers) {
    digits[0] = crc32c_one;
    for (std::size_t d = 1; d < 16; ++d) digits[d] = crc32c_multiply(digits[d - 1], unit);
    unit = crc32c_multiply(digits[15], unit);
  }
  return powers;
}();

/// crc32c_tables[k][b] is the value that a register, initially 0, has after byte b and k zero
/// bytes.
inline constexpr auto crc32c_tables = [] {
  std::array<std::array<std::uint32_t, 256>, 8> tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int i = 0; i < 8; ++i) crc = crc32c_times_x(crc);
    tables[0][b] = crc;
  }
  for (std::size_t k = 1; k < 8; ++k) {
    for (std::size_t b = 0; b < 256; ++b) {
      const std::uint32_t crc = tables[k - 1][b];
      tables[k][b] = crc >> 8 ^ tables[0][crc & 255];
    }
  }
  return tables;
}();

/// `a` times x^(8 * bytes).
template <class Multiply>
constexpr std::uint32_t crc32c_shift(std::uint32_t a, std::uint64_t bytes, Multiply multiply) {
  for (std::size_t i = 0; bytes != 0; ++i, bytes >>= 4) {
    if ((bytes & 15) != 0) a = multiply(a, crc32c_powers[i][bytes & 15]);
  }
  return a;
}

constexpr crc32c_instructions::lane crc32c_lane(std::size_t bytes) noexcept {
  return {bytes, crc32c_shift(crc32c_one, bytes, crc32c_multiply)};
}

/// x^bits.
constexpr std::uint32_t crc32c_power(std::size_t bits) noexcept {
  std::uint32_t power = crc32c_one;
  for (std::size_t i = 0; i < bits; ++i) power = crc32c_times_x(power);
  return power;
}

/// The factors for fold_down(). The product of two reflected 64-bit halves has 127 bits. If these
/// bits are read as 128 reflected bits, every power of x is one too high. So the exponents below
/// are one lower. The factors are in the upper 32 bits, where a reflected 64-bit half has its
/// lowest powers.
inline constexpr crc32c_instructions::fold crc32c_fold = {
    std::uint64_t{crc32c_power(8 * crc32c_instructions::fold_bytes + 64 - 1)} << 32,
    std::uint64_t{crc32c_power(8 * crc32c_instructions::fold_bytes - 1)} << 32};

/// Minimum number of bytes for which fold_down() is used. For fewer bytes, update() with its three
/// streams is as fast.
inline constexpr std::size_t crc32c_wide_from = 1024;

}  // namespace detail

// ---------------------------------------------------------------------------------------------

inline std::uint32_t crc32c(std::span<const std::byte> bytes, std::uint32_t before) noexcept {
  if (!crc32c_instructions::are_there()) return crc32c_portable(bytes, before);
  constexpr auto wide = detail::crc32c_lane(8192);
  constexpr auto narrow = detail::crc32c_lane(256);
  std::array<std::byte, crc32c_instructions::fold_bytes> folded;
  if (bytes.size() >= detail::crc32c_wide_from && crc32c_instructions::are_wide()) {
    const std::size_t size = bytes.size() / folded.size() * folded.size();
    crc32c_instructions::fold_down(~before, bytes.data(), size, detail::crc32c_fold, folded.data());
    before = ~crc32c_instructions::update(0, folded.data(), folded.size(), wide, narrow);
    bytes = bytes.subspan(size);
  }
  return ~crc32c_instructions::update(~before, bytes.data(), bytes.size(), wide, narrow);
}

inline std::uint32_t crc32c_combine(std::uint32_t first, std::uint32_t second,
                                    std::uint64_t second_bytes) noexcept {
  if (!crc32c_instructions::are_there()) {
    return crc32c_combine_portable(first, second, second_bytes);
  }
  // The inversions of `first` and `second` cancel out.
  return detail::crc32c_shift(first, second_bytes, crc32c_instructions::multiply) ^ second;
}

inline std::uint32_t crc32c_portable(std::span<const std::byte> bytes,
                                     std::uint32_t before) noexcept {
  const auto& tables = detail::crc32c_tables;
  std::uint32_t crc = ~before;
  const std::byte* data = bytes.data();
  std::size_t size = bytes.size();
  for (; size >= 8; data += 8, size -= 8) {
    std::uint64_t value;
    std::memcpy(&value, data, sizeof(value));  // byte_reader.hpp asserts a little-endian machine
    value ^= crc;
    crc = 0;
    for (std::size_t k = 0; k < 8; ++k) crc ^= tables[7 - k][value >> 8 * k & 255];
  }
  for (; size != 0; ++data, --size) {
    crc = crc >> 8 ^ tables[0][(crc ^ std::to_integer<std::uint32_t>(*data)) & 255];
  }
  return ~crc;
}

inline std::uint32_t crc32c_combine_portable(std::uint32_t first, std::uint32_t second,
                                             std::uint64_t second_bytes) noexcept {
  return detail::crc32c_shift(first, second_bytes, detail::crc32c_multiply) ^ second;
}

}  // namespace millrace::formats
