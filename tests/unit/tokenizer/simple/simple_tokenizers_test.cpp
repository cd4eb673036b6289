// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/error.hpp>

#include "simple/simple_tokenizers.hpp"
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

namespace {

using ids_list = std::vector<std::int32_t>;

TEST(NullTokenizer, ReadsIdsWithSingleSpacesBetween) {
  const null_tokenizer null(1000);
  EXPECT_EQ(test::encode(null, "0 17 999"), ids_list({0, 17, 999}));
  EXPECT_EQ(test::encode(null, "5"), ids_list({5}));
  EXPECT_EQ(null.vocab_size(), 1000);
  EXPECT_EQ(null.eod(), 999);
}

// Numbers are read as Python's int() does. The expected results are from Python 3.11.
TEST(NullTokenizer, ReadsANumberAsPythonDoes) {
  const null_tokenizer null(1000);
  const std::vector<std::pair<std::string, std::int32_t>> cases = {
      {"007", 7},
      {"+5", 5},
      {"-0", 0},
      {"1_0", 10},
      {"0_7", 7},
      {"5\n", 5},
      {"\t5\r\n", 5},
      {"\u00A05", 5},
      {"\u20035\u3000", 5},
      {"\u0085"
       "5",
       5},
      {"\u0665", 5},
      {"+\u0665", 5},
      {"\u0661_\u0662", 12},
      {"\u0661"
       "2",
       12},
      {"\U0001D7D8", 0},
      {std::string(4299, '0') + "1", 1}};
  for (const auto& [text, id] : cases) EXPECT_EQ(test::encode(null, text), ids_list({id})) << text;
}

TEST(NullTokenizer, RefusesWhatPythonRefuses) {
  const null_tokenizer null(1000);
  for (const std::string text :
       {"",     "\n",    "a",     "1.0",     "0x1",     "1e1",    "_1",    "1_",
        "1__0", "+_1",   "- 5",   "+",       "-",       "--5",    "+-5",   "-\n5",
        "1\n2", "\0345", "5\x1F", "1\u200B", "\uFEFF1", "\u00B2", "\u2167"}) {
    const auto encoder = null.make_encoder(0);
    id_buffer ids;
    const auto fault = encoder->encode(text, ids);
    ASSERT_TRUE(fault.has_value()) << testing::PrintToString(text);
    EXPECT_EQ(fault->offset_bytes, 0U);
  }
  EXPECT_THROW(test::encode(null, std::string("5\0", 2)), std::runtime_error);
  EXPECT_THROW(test::encode(null, std::string(4301, '0')), std::runtime_error);
}

TEST(NullTokenizer, SaysWhichPieceIsAtFault) {
  const auto encoder = null_tokenizer(1000).make_encoder(0);
  const auto fault_of = [&](std::string_view text) {
    id_buffer ids;
    return encoder->encode(text, ids).value_or(encode_fault{});
  };
  EXPECT_EQ(fault_of("1  2").offset_bytes, 2U);  // between the two spaces is an empty piece
  EXPECT_THAT(fault_of("1  2").what, testing::HasSubstr("expected an integer, found ''"));
  EXPECT_EQ(fault_of("1 2 ").offset_bytes, 4U);
  EXPECT_EQ(fault_of("1 x 2").offset_bytes, 2U);
  EXPECT_THAT(fault_of("1 1000").what,
              testing::HasSubstr("id '1000' is outside the vocabulary, 0..999"));
  EXPECT_THAT(fault_of("-1").what, testing::HasSubstr("outside the vocabulary"));
  // These numbers need more than 64 bits. They are too large, and must not wrap around to small
  // numbers.
  EXPECT_THAT(fault_of("18446744073709551617").what, testing::HasSubstr("outside the vocabulary"));
  EXPECT_THAT(fault_of("-18446744073709551617").what, testing::HasSubstr("outside the vocab"));
}

TEST(NullTokenizer, TakesTheLargestVocabulary) {
  const null_tokenizer null(2147483647);
  EXPECT_EQ(test::encode(null, "2147483646"), ids_list({2147483646}));
  EXPECT_THROW(test::encode(null, "2147483647"), std::runtime_error);
  EXPECT_EQ(null.eod(), 2147483646);
}

TEST(NullTokenizer, RefusesVocabulariesThatHaveNoIds) {
  EXPECT_THROW(null_tokenizer(0), config_error);
  EXPECT_THROW(null_tokenizer(-5), config_error);
  EXPECT_THROW(null_tokenizer(std::int64_t{1} << 31), config_error);
}

TEST(NullTokenizer, EndsDocumentsWithTheIdThatItIsGiven) {
  EXPECT_EQ(null_tokenizer(10).eod(), 9);
  EXPECT_EQ(null_tokenizer(10, 0).eod(), 0);
  EXPECT_NE(null_tokenizer(10, 0).fingerprint(), null_tokenizer(10).fingerprint());
  EXPECT_THROW(null_tokenizer(10, 10), config_error);
  EXPECT_THROW(null_tokenizer(10, -1), config_error);
}

TEST(NullTokenizer, DecodesToItsOwnInput) {
  const null_tokenizer null(1000);
  EXPECT_EQ(null.decode(std::vector<std::int64_t>{0, 17, 999}), "0 17 999");
  EXPECT_EQ(null.decode(std::vector<std::int64_t>{1, 1000, -1}), "1 \uFFFD \uFFFD");
  EXPECT_EQ(null.decode({}), "");
}

TEST(NullTokenizer, HasAFingerprintOfItsOwnForEverySize) {
  EXPECT_EQ(null_tokenizer(10).fingerprint(), null_tokenizer(10).fingerprint());
  EXPECT_NE(null_tokenizer(10).fingerprint(), null_tokenizer(11).fingerprint());
}

}  // namespace

}  // namespace millrace::tokenizer::detail
