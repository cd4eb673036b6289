// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/unaligned_span.hpp>

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace millrace::formats {
namespace {

// Values are read at every address. UBSan would report a plain load at an odd address.
TEST(UnalignedSpan, ReadsAtEveryAddress) {
  std::array<std::byte, 32> room{};
  const std::array<std::int64_t, 2> values = {-2, 0x0102030405060708};
  for (std::size_t shift = 0; shift < 8; ++shift) {
    std::memcpy(room.data() + shift, values.data(), sizeof(values));
    const auto bytes = std::span<const std::byte>(room).subspan(shift, sizeof(values));
    const unaligned_span<std::int64_t> view(bytes);
    ASSERT_EQ(view.size(), 2);
    EXPECT_EQ(view[0], values[0]);
    EXPECT_EQ(view[1], values[1]);
    EXPECT_EQ(view.back(), values[1]);
    EXPECT_EQ(view.to_vector(), std::vector(values.begin(), values.end()));
    EXPECT_EQ(view.bytes().data(), room.data() + shift);
    EXPECT_EQ(view.bytes().size(), sizeof(values));
  }
}

TEST(UnalignedSpan, IsEmptyByDefault) {
  const unaligned_span<std::int32_t> view;
  EXPECT_TRUE(view.empty());
  EXPECT_EQ(view.size(), 0);
  EXPECT_TRUE(view.bytes().empty());
  EXPECT_TRUE(view.to_vector().empty());
}

}  // namespace
}  // namespace millrace::formats
