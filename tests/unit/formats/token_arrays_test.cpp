// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/token_arrays.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/error.hpp>

namespace millrace::formats {
namespace {

using testing::HasSubstr;

std::vector<std::byte> llm_c_file(dtype type, std::int64_t tokens) {
  std::vector<std::byte> file = encode_llm_c_header(type, tokens);
  file.resize(file.size() + static_cast<std::size_t>(tokens) * size_bytes(type));
  return file;
}

TEST(LlmC, HeadersAreReadAsTheyAreWritten) {
  for (const dtype type : {dtype::uint16, dtype::int32}) {
    for (const std::int64_t tokens : {0, 1, 1000}) {
      const auto file = llm_c_file(type, tokens);
      const llm_c_view found = parse_llm_c(file, file.size());
      EXPECT_EQ(found.type, type);
      EXPECT_EQ(found.tokens, tokens);
      EXPECT_TRUE(begins_as_llm_c(file));
    }
  }
  const auto most = encode_llm_c_header(dtype::uint16, llm_c_most_tokens);
  EXPECT_EQ(parse_llm_c(most, 1024 + 2 * std::uint64_t{0x7FFFFFFF}).tokens, llm_c_most_tokens);
}

TEST(LlmC, EveryTruncationAndExtraByteIsRefused) {
  const auto whole = llm_c_file(dtype::int32, 3);
  for (std::size_t size = 0; size < whole.size() + 5; ++size) {
    if (size == whole.size()) continue;
    auto cut = whole;
    cut.resize(size);
    const auto head = std::span(cut).first(std::min<std::size_t>(size, llm_c_header_bytes));
    EXPECT_THROW((void)parse_llm_c(head, size), format_error) << size;
  }
}

TEST(LlmC, RefusesOtherMagicsVersionsAndCounts) {
  for (const auto& [at, value, text] :
       {std::tuple(0, 20240522, "evaluation files"), std::tuple(0, 1, "found 1"),
        std::tuple(4, 7, "expected version 1 of magic 20240520, found 7"),
        std::tuple(8, -1, "the token count is -1, expected 0 or more"),
        std::tuple(8, 4, "expected 1032 for a header and 4 tokens")}) {
    auto file = llm_c_file(dtype::uint16, 3);
    std::memcpy(file.data() + at, &value, sizeof(value));
    try {
      (void)parse_llm_c(file, file.size());
      ADD_FAILURE() << "accepted " << value;
    } catch (const format_error& e) {
      EXPECT_THAT(e.what(), HasSubstr(text));
    }
  }
}

TEST(NanosetMetadata, HasTheCountAsHumanizePrintsIt) {
  // Python: humanize.metric(count, unit="T")
  for (const auto& [count, text] :
       std::vector<std::pair<std::int64_t, std::string>>{{0, "0.00 T"},
                                                         {1, "1.00 T"},
                                                         {11, "11.0 T"},
                                                         {999, "999 T"},
                                                         {1000, "1.00 kT"},
                                                         {1234567, "1.23 MT"},
                                                         {9994, "9.99 kT"},
                                                         {9999, "10.0 kT"},
                                                         {999499, "999 kT"},
                                                         {999999, "1.00 MT"},
                                                         {15'000'000'000'000, "15.0 TT"},
                                                         {9'223'372'036'854'775'807, "9.22 ET"}}) {
    EXPECT_EQ(encode_nanoset_metadata({"gpt2", dtype::uint16, count}),
              "gpt2|2\n" + std::to_string(count) + "\n" + text);
  }
}

TEST(NanosetMetadata, IsReadWithAnyNameOfATokenizer) {
  for (const char* tokenizer : {"gpt2", "", "a|b", "Unknown Tokenizer|4"}) {
    const nanoset_metadata found =
        parse_nanoset_metadata(encode_nanoset_metadata({tokenizer, dtype::int32, 12}));
    EXPECT_EQ(found.tokenizer, tokenizer);
    EXPECT_EQ(found.type, dtype::int32);
    EXPECT_EQ(found.tokens, 12);
  }
  EXPECT_EQ(parse_nanoset_metadata("x|2\n7").tokens, 7);
  for (const char* wrong : {"", "gpt2", "gpt2|3\n1", "gpt2|2", "gpt2|2\n", "gpt2|2\n-1",
                            "gpt2|2\n1x", "gpt2|22\n1", "gpt2|2\n99999999999999999999"}) {
    EXPECT_THROW((void)parse_nanoset_metadata(wrong), format_error) << wrong;
  }
}

TEST(ArrayRow, HasAnEndOrABeginAndAnEnd) {
  const auto row = [](const char* text) { return parse_array_row(text); };
  EXPECT_EQ(row("12")->end, 12);
  EXPECT_FALSE(row("12\r")->begin.has_value());
  EXPECT_EQ(row("3,12")->begin, 3);
  EXPECT_EQ(row("3,12\r")->end, 12);
  EXPECT_FALSE(row("3,12\r")->has_more);
  EXPECT_TRUE(row("3,12,\"a,b\",x,7\r")->has_more);
  EXPECT_EQ(row("3,12,\"a,b\",x,7\r")->end, 12);
  for (const char* wrong :
       {"", "\r", "x", "3,", "3,x", "3 ", "3,4 ", "3;4", "99999999999999999999"}) {
    EXPECT_FALSE(row(wrong).has_value()) << wrong;
  }
}

}  // namespace
}  // namespace millrace::formats
