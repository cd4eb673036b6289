// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/thrift_writer.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

namespace millrace::formats {
namespace {

using element = thrift_writer::element;

std::vector<std::byte> raw(std::initializer_list<unsigned> values) {
  std::vector<std::byte> bytes;
  for (const unsigned value : values) bytes.push_back(static_cast<std::byte>(value));
  return bytes;
}

TEST(ThriftWriter, WritesEachType) {
  thrift_writer writer;
  writer.fields([&] {
    writer.field_bool(1, true);
    writer.field_bool(2, false);
    writer.field_int8(3, -1);
    writer.field_int32(5, -3);
    writer.field_int64(20, 300);
    writer.field_text(21, "ab");
  });
  EXPECT_EQ(writer.take(),
            raw({0x11, 0x12, 0x13, 0xFF, 0x25, 0x05, 0xF6, 0xD8, 0x04, 0x18, 2, 'a', 'b', 0}));
}

TEST(ThriftWriter, WritesTheSmallestAndLargestNumbers) {
  thrift_writer writer;
  writer.put_int32(std::numeric_limits<std::int32_t>::min());
  writer.put_int32(std::numeric_limits<std::int32_t>::max());
  EXPECT_EQ(writer.take(), raw({0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 0xFE, 0xFF, 0xFF, 0xFF, 0x0F}));
  writer.fields([&] { writer.field_int64(1, std::numeric_limits<std::int64_t>::min()); });
  EXPECT_EQ(writer.take(),
            raw({0x16, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x01, 0}));
}

// After an inner struct, the fields of the outer one are counted on from its own last field.
TEST(ThriftWriter, NestsStructs) {
  thrift_writer writer;
  writer.fields([&] {
    writer.field_struct(3, [&] { writer.field_struct(10, [] {}); });
    writer.field_list(4, element::structure, 2);
    writer.fields([&] { writer.field_bool(2, true); });
    writer.fields([] {});
    writer.field_bool(5, true);
  });
  EXPECT_EQ(writer.take(), raw({0x3C, 0xAC, 0, 0, 0x19, 0x2C, 0x21, 0, 0, 0x11, 0}));
}

TEST(ThriftWriter, WritesTheSizesOfLists) {
  for (const std::uint32_t count : {0U, 14U, 15U, 200U}) {
    thrift_writer writer;
    writer.fields([&] {
      writer.field_list(1, element::int32, count);
      for (std::uint32_t i = 0; i < count; ++i) writer.put_int32(1);
    });
    std::vector<std::byte> expected = raw({0x19, count < 15 ? count << 4 | 5 : 0xF5});
    if (count == 15) expected.push_back(std::byte{15});
    if (count == 200) expected.insert(expected.end(), {std::byte{0xC8}, std::byte{1}});
    expected.insert(expected.end(), count, std::byte{2});
    expected.push_back(std::byte{0});
    EXPECT_EQ(writer.bytes(), expected) << count;
  }
}

}  // namespace
}  // namespace millrace::formats
