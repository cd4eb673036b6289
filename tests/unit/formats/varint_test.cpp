// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/varint.hpp>

#include <gtest/gtest.h>

#include <array>
#include <initializer_list>
#include <vector>

#include "unit/formats/codec_quartet.hpp"

namespace millrace::formats {
namespace {

using test::bytes;
using test::expect_refused;

std::uint64_t parse_one(std::span<const std::byte> input) {
  return varint_reader(input, 0).next("a number");
}

bytes of(std::initializer_list<int> values) {
  bytes result;
  for (const int value : values) result.push_back(static_cast<std::byte>(value));
  return result;
}

TEST(Varint, IsReadAsItWasWritten) {
  for (unsigned bits = 0; bits <= 64; ++bits) {
    for (const std::uint64_t near : {~0UL, 0UL, 1UL}) {
      const std::uint64_t value = (bits == 64 ? 0 : std::uint64_t{1} << bits) + near;
      std::array<std::byte, most_varint_bytes> buffer;
      const std::byte* end = put_varint(buffer.data(), value);
      const std::span<const std::byte> written(buffer.data(), end);
      EXPECT_EQ(parse_one(written), value);
      test::expect_every_truncation_refused(parse_one, written);
    }
  }
}

TEST(Varint, HasSevenBitsAByteTheLowestFirst) {
  std::array<std::byte, most_varint_bytes> buffer;
  std::byte* end = put_varint(buffer.data(), 300);
  EXPECT_EQ(bytes(buffer.data(), end), of({0xAC, 0x02}));
}

TEST(Varint, HasOneSpelling) {
  expect_refused(parse_one, of({0x80, 0x00}), 0, "more bytes than it needs");
  expect_refused(parse_one, of({0xFF, 0x80, 0x00}), 0, "more bytes than it needs");
  EXPECT_EQ(parse_one(of({0x00})), 0U);
}

TEST(Varint, HasAtMost64Bits) {
  const bytes most = of({0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01});
  EXPECT_EQ(parse_one(most), ~std::uint64_t{0});
  expect_refused(parse_one, test::with(most, 9, std::uint8_t{2}), 0, "exceeds 64 bits");
  expect_refused(parse_one, test::with(most, 9, std::uint8_t{0x81}), 0, "exceeds 64 bits");
}

TEST(Zigzag, TakesEveryDifferenceBothWays) {
  EXPECT_EQ(zigzag(0), 0U);
  EXPECT_EQ(zigzag(~0UL), 1U);  // -1
  EXPECT_EQ(zigzag(1), 2U);
  EXPECT_EQ(zigzag(~0UL - 1), 3U);
  for (const std::uint64_t value : {0UL, 1UL, ~0UL, 1UL << 63, (1UL << 63) - 1, 12345UL}) {
    EXPECT_EQ(from_zigzag(zigzag(value)), value);
    EXPECT_EQ(zigzag(from_zigzag(value)), value);
  }
}

}  // namespace
}  // namespace millrace::formats
