// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/crc32c.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string_view>
#include <vector>

#include "support/seed.hpp"

namespace millrace::formats {
namespace {

using bytes = std::vector<std::byte>;

std::uint32_t crc_of(std::string_view text) {
  return crc32c(std::as_bytes(std::span(text)));
}

/// Computes CRC-32C by its definition, one bit at a time.
std::uint32_t bitwise(std::span<const std::byte> data) {
  std::uint32_t crc = 0xFFFFFFFF;
  for (const std::byte byte : data) {
    crc ^= std::to_integer<std::uint32_t>(byte);
    for (int i = 0; i < 8; ++i) crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82F63B78 : crc >> 1;
  }
  return ~crc;
}

bytes random_bytes(std::size_t size, std::mt19937_64& random) {
  bytes data(size);
  for (std::byte& byte : data) byte = static_cast<std::byte>(random());
  return data;
}

// The expected checksums are published values: those of RFC 3720, B.4, and the check value of CRC
// catalogs.
TEST(Crc32c, GivesThePublishedValues) {
  EXPECT_EQ(crc_of(""), 0U);
  EXPECT_EQ(crc_of("123456789"), 0xE3069283U);
  EXPECT_EQ(crc32c(bytes(32, std::byte{0})), 0x8A9136AAU);
  EXPECT_EQ(crc32c(bytes(32, std::byte{0xFF})), 0x62A8AB43U);
  bytes counting(32);
  for (std::size_t i = 0; i < 32; ++i) counting[i] = static_cast<std::byte>(i);
  EXPECT_EQ(crc32c(counting), 0x46DD794EU);
  EXPECT_EQ(crc32c(bytes(counting.rbegin(), counting.rend())), 0x113FDB5CU);
  const std::uint8_t read_command[48] = {
      0x01, 0xc0, 0, 0,    0, 0, 0, 0,    0,    0, 0, 0, 0, 0, 0, 0, 0x14, 0, 0, 0, 0, 0, 0x04, 0,
      0,    0,    0, 0x14, 0, 0, 0, 0x18, 0x28, 0, 0, 0, 0, 0, 0, 0, 0x02, 0, 0, 0, 0, 0, 0,    0};
  EXPECT_EQ(crc32c(std::as_bytes(std::span(read_command))), 0xD9963A56U);
}

TEST(Crc32c, IsThatOfTheDefinitionAtEveryLengthAndAlignment) {
  std::mt19937_64 random(test::seed(1));
  const bytes data = random_bytes(264, random);
  for (std::size_t from = 0; from < 16; ++from) {
    for (std::size_t size = 0; size <= 200; ++size) {
      const auto part = std::span(data).subspan(from, size);
      const std::uint32_t expected = bitwise(part);
      ASSERT_EQ(crc32c(part), expected) << size << " bytes from " << from;
      ASSERT_EQ(crc32c_portable(part), expected) << size << " bytes from " << from;
    }
  }
}

// The checksum must be correct for lengths near the one from which three streams are used. It must
// also be correct for longer texts, which use three streams several times.
TEST(Crc32c, IsThatOfTheDefinitionAtLengthsOfStreams) {
  std::mt19937_64 random(test::seed(1));
  const bytes data = random_bytes(200000, random);
  for (const std::size_t unit : {768UL, 2 * 768UL, 3 * 8192UL, 12 * 8192UL}) {
    for (const std::size_t size : {unit - 1, unit, unit + 1, unit + 767, unit + 768, unit + 777}) {
      for (const std::size_t from : {0UL, 3UL}) {
        const auto part = std::span(data).subspan(from, size);
        const std::uint32_t expected = bitwise(part);
        EXPECT_EQ(crc32c(part), expected) << size << " bytes from " << from;
        EXPECT_EQ(crc32c_portable(part), expected) << size << " bytes from " << from;
      }
    }
  }
}

// The checksum must be correct for lengths near the one from which the widest instructions are
// used. The test needs a machine with these instructions.
TEST(Crc32c, IsThatOfTheDefinitionAtLengthsThatAreFolded) {
  std::mt19937_64 random(test::seed(1));
  const bytes data = random_bytes(70000, random);
  for (const std::size_t unit : {1024UL, 1280UL, 4096UL, 65536UL}) {
    for (const std::size_t more : {0UL, 1UL, 7UL, 255UL, 256UL, 1023UL}) {
      for (const std::size_t less : {0UL, 1UL}) {
        const auto part = std::span(data).subspan(more % 5, unit + more - less);
        const auto before = static_cast<std::uint32_t>(random());
        EXPECT_EQ(crc32c(part), bitwise(part)) << part.size() << " bytes";
        EXPECT_EQ(crc32c(part, before), crc32c_portable(part, before)) << part.size() << " bytes";
      }
    }
  }
}

// Streams and folding give the same checksum. On a machine with the widest instructions, crc32c()
// folds long inputs, so the test calls the function for streams directly.
TEST(Crc32c, StreamsAndFoldingAgree) {
  if (!crc32c_instructions::are_wide()) GTEST_SKIP() << "no AVX-512 with VPCLMULQDQ here";
  std::mt19937_64 random(test::seed(1));
  const bytes data = random_bytes(100000, random);
  constexpr auto wide = detail::crc32c_lane(8192);
  constexpr auto narrow = detail::crc32c_lane(256);
  for (int i = 0; i < 200; ++i) {
    const auto part = std::span(data).first(random() % data.size());
    const std::uint32_t streams =
        ~crc32c_instructions::update(~0U, part.data(), part.size(), wide, narrow);
    ASSERT_EQ(crc32c(part), streams) << part.size() << " bytes";
  }
}

TEST(Crc32c, GoesOnFromWhatIsBefore) {
  std::mt19937_64 random(test::seed(1));
  const bytes data = random_bytes(3000, random);
  const std::uint32_t whole = bitwise(data);
  for (std::size_t cut = 0; cut <= data.size(); cut += 13) {
    const auto first = std::span(data).first(cut);
    const auto second = std::span(data).subspan(cut);
    EXPECT_EQ(crc32c(second, crc32c(first)), whole) << "cut at " << cut;
    EXPECT_EQ(crc32c_portable(second, crc32c_portable(first)), whole) << "cut at " << cut;
  }
}

TEST(Crc32cCombine, IsTheCrcOfBothTogether) {
  std::mt19937_64 random(test::seed(1));
  const bytes data = random_bytes(70000, random);
  for (const std::size_t cut :
       {0UL, 1UL, 2UL, 15UL, 16UL, 17UL, 255UL, 256UL, 4095UL, 65536UL, 69999UL, 70000UL}) {
    const std::uint32_t first = bitwise(std::span(data).first(cut));
    const std::uint32_t second = bitwise(std::span(data).subspan(cut));
    EXPECT_EQ(crc32c_combine(first, second, data.size() - cut), bitwise(data)) << cut;
    EXPECT_EQ(crc32c_combine_portable(first, second, data.size() - cut), bitwise(data)) << cut;
  }
}

// Combining is associative: combining a and b, and then c, gives the same as combining a with the
// combination of b and c. This covers lengths that are too large to test with data.
TEST(Crc32cCombine, IsAssociativeAtAllLengths) {
  std::mt19937_64 random(test::seed(1));
  for (int i = 0; i < 2000; ++i) {
    const auto a = static_cast<std::uint32_t>(random());
    const auto b = static_cast<std::uint32_t>(random());
    const auto c = static_cast<std::uint32_t>(random());
    const std::uint64_t b_bytes = random() >> (1 + random() % 63);
    const std::uint64_t c_bytes = random() >> (1 + random() % 63);
    const std::uint32_t left = crc32c_combine(crc32c_combine(a, b, b_bytes), c, c_bytes);
    const std::uint32_t right = crc32c_combine(a, crc32c_combine(b, c, c_bytes), b_bytes + c_bytes);
    ASSERT_EQ(left, right) << b_bytes << " and " << c_bytes;
    ASSERT_EQ(crc32c_combine_portable(a, b, b_bytes), crc32c_combine(a, b, b_bytes)) << b_bytes;
  }
}

}  // namespace
}  // namespace millrace::formats
