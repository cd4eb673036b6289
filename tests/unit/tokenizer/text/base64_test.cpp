// SPDX-License-Identifier: Apache-2.0
#include "text/base64.hpp"

#include <gtest/gtest.h>

namespace millrace::tokenizer::detail {
namespace {

TEST(Base64, ReadsEveryPadding) {
  std::string bytes = "left over";
  EXPECT_TRUE(decode_base64("", bytes));
  EXPECT_EQ(bytes, "");
  EXPECT_TRUE(decode_base64("Zg==", bytes));
  EXPECT_EQ(bytes, "f");
  EXPECT_TRUE(decode_base64("Zm8=", bytes));
  EXPECT_EQ(bytes, "fo");
  EXPECT_TRUE(decode_base64("Zm9vYmFy", bytes));
  EXPECT_EQ(bytes, "foobar");
}

TEST(Base64, ReadsEveryByte) {
  std::string bytes;
  EXPECT_TRUE(decode_base64("AP/+gA==", bytes));
  EXPECT_EQ(bytes, std::string("\0\xff\xfe\x80", 4));
}

TEST(Base64, RefusesWhatNoEncoderWrites) {
  std::string bytes;
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "====", "Z===", "Zg==Zg==", "Zm9-", "Zm 9",
                           "Zh==", "Zm9=", "=Zm9", "Zg=g", "\xc3\xa9g="}) {
    EXPECT_FALSE(decode_base64(text, bytes)) << text;
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
