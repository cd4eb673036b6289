// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/verify_tokens.hpp>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::EndsWith;

constexpr open_options full = {.check = check_level::full};

std::string fault_of(const std::filesystem::path& prefix, std::int64_t vocab_size) {
  try {
    verify_tokens(indexed_dataset(prefix, full), vocab_size);
  } catch (const format_error& e) {
    return e.what();
  }
  return "";
}

TEST(VerifyTokens, NamesTheFirstIdOutsideTheVocabulary) {
  const test::temp_folder folder;
  test::write_dataset<std::uint16_t>(folder / "data", {{{1, 2}, {}}, {{}, {3, 9, 9}}, {}, {{5}}});
  EXPECT_EQ(fault_of(folder / "data", 10), "");
  EXPECT_THAT(fault_of(folder / "data", 9),
              EndsWith("data.bin: token 1 of sequence 3 is 9, expected 0 to 8 (at byte 6)"));
  EXPECT_THAT(fault_of(folder / "data", 1),
              EndsWith("data.bin: token 0 of sequence 0 is 1, expected 0 to 0 (at byte 0)"));
}

// A negative id must not wrap to an id of the vocabulary, even if the vocabulary has more ids than
// the type can hold.
TEST(VerifyTokens, TakesNegativeIdsForNone) {
  const test::temp_folder folder;
  test::write_dataset<std::int32_t>(folder / "data", {{{1, -1}}});
  for (const std::int64_t vocab_size : {std::int64_t{1000}, std::int64_t{1} << 40}) {
    EXPECT_THAT(
        fault_of(folder / "data", vocab_size),
        EndsWith("is -1, expected 0 to " + std::to_string(vocab_size - 1) + " (at byte 4)"));
  }
  test::write_dataset<std::int64_t>(folder / "data", {{{std::int64_t{1} << 62, -1}}});
  EXPECT_THAT(fault_of(folder / "data", std::numeric_limits<std::int64_t>::max()),
              EndsWith("(at byte 8)"));
}

TEST(VerifyTokens, AcceptsADatasetWithoutTokens) {
  const test::temp_folder folder;
  test::write_dataset<std::uint16_t>(folder / "data", {{}, {{}}});
  EXPECT_EQ(fault_of(folder / "data", 1), "");
}

TEST(VerifyTokens, RefusesFloats) {
  const test::temp_folder folder;
  test::write_dataset<float>(folder / "data", {{{1.0F}}});
  EXPECT_THROW(verify_tokens(indexed_dataset(folder / "data", full), 10), config_error);
}

// The scan reads in blocks. A bad token is found at any position in a block, and next to the
// borders of blocks.
TEST(VerifyTokens, FindsOneWhereverItStands) {
  const test::temp_folder folder;
  for (const std::size_t at : {0U, 1U, 4095U, 4096U, 4097U, 8191U, 9998U, 9999U}) {
    SCOPED_TRACE(at);
    std::vector<std::uint16_t> tokens(10000, 7);
    tokens[at] = 8;
    test::write_dataset<std::uint16_t>(folder / "data", {{tokens}});
    EXPECT_THAT(fault_of(folder / "data", 8),
                EndsWith("token " + std::to_string(at) + " of sequence 0 is 8, expected 0 to 7 " +
                         "(at byte " + std::to_string(2 * at) + ")"));
  }
}

}  // namespace
}  // namespace millrace::dataset
