// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/dtype.hpp>

#include <gtest/gtest.h>

namespace millrace::formats {
namespace {

// Files contain these codes, which are Megatron's. In files by other tools, codes 6 and 7 may be
// swapped.
TEST(Dtype, HasMegatronsCodes) {
  struct row {
    int code;
    std::size_t size;
    std::string_view name;
  };
  for (const row& r :
       {row{1, 1, "uint8"}, row{2, 1, "int8"}, row{3, 2, "int16"}, row{4, 4, "int32"},
        row{5, 8, "int64"}, row{6, 8, "float64"}, row{7, 4, "float32"}, row{8, 2, "uint16"}}) {
    const auto type = dtype_from_code(static_cast<std::uint8_t>(r.code));
    ASSERT_TRUE(type) << r.code;
    EXPECT_EQ(size_bytes(*type), r.size);
    EXPECT_EQ(name(*type), r.name);
  }
}

TEST(Dtype, KnowsNoOtherCode) {
  int known = 0;
  for (int code = 0; code < 256; ++code) {
    known += dtype_from_code(static_cast<std::uint8_t>(code)).has_value() ? 1 : 0;
  }
  EXPECT_EQ(known, 8);
  EXPECT_FALSE(dtype_from_code(0));
}

TEST(Dtype, WithTypeGivesTheTypeThatDtypeOfNames) {
  for (std::uint8_t code = 1; code <= 8; ++code) {
    const dtype type = *dtype_from_code(code);
    with_type(type, [&](auto zero) {
      EXPECT_EQ(dtype_of<decltype(zero)>(), type);
      EXPECT_EQ(sizeof(zero), size_bytes(type));
    });
  }
}

TEST(Dtype, VocabularyThresholdIsMegatrons) {
  EXPECT_EQ(dtype_for_vocabulary(1), dtype::uint16);
  EXPECT_EQ(dtype_for_vocabulary(65499), dtype::uint16);
  EXPECT_EQ(dtype_for_vocabulary(65500), dtype::int32);
  EXPECT_EQ(dtype_for_vocabulary(65536), dtype::int32);
}

}  // namespace
}  // namespace millrace::formats
