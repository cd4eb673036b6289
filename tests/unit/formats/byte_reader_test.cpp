// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/byte_reader.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

#include <millrace/formats/detail/byte_writer.hpp>

namespace millrace::formats {
namespace {

TEST(ByteReader, ReadsBackWhatTheWriterWrote) {
  byte_writer writer;
  writer("a", std::uint8_t{7});
  writer("b", std::int64_t{-3});
  writer("c", std::uint16_t{0x1234});
  writer("d", 0.5);
  const std::vector<std::byte> file = writer.take();
  ASSERT_EQ(file.size(), 1 + 8 + 2 + 8);
  EXPECT_EQ(file[9], std::byte{0x34}) << "little-endian";

  byte_reader reader(file);
  std::uint8_t a = 0;
  std::int64_t b = 0;
  std::uint16_t c = 0;
  double d = 0;
  reader("a", a);
  reader("b", b);
  reader("c", c);
  EXPECT_EQ(reader.offset(), 11);
  EXPECT_EQ(reader.remaining(), 8);
  reader("d", d);
  EXPECT_EQ(a, 7);
  EXPECT_EQ(b, -3);
  EXPECT_EQ(c, 0x1234);
  EXPECT_EQ(d, 0.5);
  EXPECT_EQ(reader.remaining(), 0);
}

TEST(ByteReader, NamesTheFieldThatTheFileEndsIn) {
  const std::array<std::byte, 3> file{};
  byte_reader reader(file);
  std::uint8_t first = 0;
  reader("the first", first);
  try {
    std::uint32_t second = 0;
    reader("the second", second);
    FAIL() << "read past the end";
  } catch (const format_error& e) {
    EXPECT_EQ(e.offset(), 1);
    EXPECT_THAT(e.what(), testing::HasSubstr("the second, which takes 4 bytes: only 2 are left"));
  }
}

// A size is refused if offset + size wraps to a small number.
TEST(ByteReader, RefusesSizesThatWouldWrap) {
  const std::array<std::byte, 3> file{};
  byte_reader reader(file);
  (void)reader.take("the start", 2);
  EXPECT_THROW((void)reader.take("all", ~std::uint64_t{0}), format_error);
  EXPECT_THROW((void)reader.take("all", ~std::uint64_t{0} - 1), format_error);
  EXPECT_EQ(reader.take("the rest", 1).size(), 1);
}

}  // namespace
}  // namespace millrace::formats
