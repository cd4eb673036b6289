// SPDX-License-Identifier: Apache-2.0
#include "simple/byte_level_tokenizer.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/encode.hpp"

namespace millrace::tokenizer::detail {
namespace {

TEST(ByteLevelTokenizer, GivesTheBytes) {
  const byte_level_tokenizer bytes;
  EXPECT_EQ(test::encode(bytes, "a\u00E9\n"), (std::vector<std::int32_t>{0x61, 0xC3, 0xA9, 0x0A}));
  EXPECT_EQ(test::encode(bytes, ""), std::vector<std::int32_t>());
  EXPECT_EQ(bytes.vocab_size(), 512);
  EXPECT_EQ(bytes.eod(), 0);
}

// Tests lengths below and above every vector width. Each text has its own allocation.
TEST(ByteLevelTokenizer, WidensEveryByteAtEveryLength) {
  const byte_level_tokenizer bytes;
  for (std::size_t size = 0; size < 300; ++size) {
    std::string text(size, '\0');
    std::vector<std::int64_t> expected(size);
    for (std::size_t i = 0; i < size; ++i) {
      text[i] = static_cast<char>(255 - i);
      expected[i] = static_cast<unsigned char>(text[i]);
    }
    const auto ids = test::encode(bytes, text);
    EXPECT_EQ(std::vector<std::int64_t>(ids.begin(), ids.end()), expected);
    EXPECT_EQ(bytes.decode(expected), text);
  }
}

TEST(ByteLevelTokenizer, DecodesWhatIsNoByteAsReplacement) {
  const std::vector<std::int64_t> ids = {'a', 256, 511, 512, -1, 'b'};
  EXPECT_EQ(byte_level_tokenizer().decode(ids), "a\uFFFD\uFFFD\uFFFD\uFFFDb");
}

}  // namespace
}  // namespace millrace::tokenizer::detail
