// SPDX-License-Identifier: Apache-2.0
#include "record/text_key.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include <millrace/error.hpp>

namespace millrace::preprocess {
namespace {

using testing::ElementsAre;

TEST(TextKey, IsCutAtDots) {
  EXPECT_THAT(key_of_path("text").path, ElementsAre("text"));
  EXPECT_THAT(key_of_path("meta.text").path, ElementsAre("meta", "text"));
  EXPECT_THAT(key_of_path("a.b c.d").path, ElementsAre("a", "b c", "d"));
  EXPECT_EQ(key_of_path("meta.text").name, "meta.text");
}

TEST(TextKey, IsOneKeyWhereItIsPlain) {
  EXPECT_THAT(plain_key("meta.text").path, ElementsAre("meta.text"));
  EXPECT_THAT(plain_key("").path, ElementsAre(""));
  EXPECT_THAT(plain_keys({"a", "b.c"}), ElementsAre(plain_key("a"), plain_key("b.c")));
  EXPECT_EQ(key_of_path("text"), plain_key("text"));
}

TEST(TextKey, HasNoEmptyPart) {
  for (const char* path : {"", ".", ".a", "a.", "a..b"}) {
    EXPECT_THROW((void)key_of_path(path), config_error) << path;
  }
}

}  // namespace
}  // namespace millrace::preprocess
