// SPDX-License-Identifier: Apache-2.0
#include "sentencepiece/wire_reader.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "model_builder.hpp"

namespace millrace::tokenizer::detail {
namespace {

using namespace millrace::test;

TEST(WireReader, ReadsFieldsOfAllKindsInOrder) {
  const std::string message = number_field(1, 300) + bytes_field(2, "ab") + float_field(3, -1.5F) +
                              varint(4 << 3 | 1) + std::string(8, 'x') + number_field(5, ~0ULL);
  wire_reader reader(message);
  ASSERT_TRUE(reader.next());
  EXPECT_TRUE(reader.is_number());
  EXPECT_EQ(reader.value(), 300U);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.content(), "ab");
  EXPECT_EQ(reader.message().offset(), 5U);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.as_float(), -1.5F);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.number(), 4U);
  ASSERT_TRUE(reader.next());
  EXPECT_EQ(reader.value(), ~0ULL);
  EXPECT_FALSE(reader.next());
}

// A truncation between two fields cannot be detected. Any other truncation must be detected.
TEST(WireReader, RefusesEveryTruncationInsideAField) {
  const std::string message = bytes_field(2, "abc") + float_field(3, 1);
  for (std::size_t size = 1; size < message.size(); ++size) {
    if (size == bytes_field(2, "abc").size()) continue;
    const std::vector<char> cut(message.data(), message.data() + size);
    wire_reader reader(std::string_view(cut.data(), cut.size()));
    try {
      while (reader.next()) {
      }
      ADD_FAILURE() << "accepted " << size << " bytes";
    } catch (const format_error& e) {
      EXPECT_LE(e.offset(), size) << e.what();
    }
  }
}

TEST(WireReader, RefusesWhatIsNoField) {
  for (const std::string& bytes :
       {std::string("\x00\x00", 2), std::string("\x0B"), std::string("\x0F\x01"),
        std::string(11, '\xFF'), varint(2) + varint(~0ULL),
        std::string("\x0A\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01")}) {
    wire_reader reader(bytes);
    EXPECT_THROW(reader.next(), format_error);
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
