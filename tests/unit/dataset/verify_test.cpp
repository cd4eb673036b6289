// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/verify.hpp>

#include <cstdint>
#include <filesystem>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/formats/sum.hpp>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

// --- verify_sums ------------------------------------------------------------------------------

std::vector<std::uint32_t> blocks_of(std::span<const std::byte> file) {
  std::vector<std::uint32_t> blocks;
  formats::block_checksums checksums;
  checksums.add(file, blocks);
  checksums.finish(blocks);
  return blocks;
}

/// A .bin of 2 MiB + 6 bytes and an index of more than 1 MiB, with their checksums.
class VerifySums : public testing::Test {
 protected:
  VerifySums() {
    test::documents_of<std::uint16_t> documents;
    for (int i = 0; i < 60000; ++i) documents.push_back({{static_cast<std::uint16_t>(i)}});
    documents.push_back({std::vector<std::uint16_t>((1 << 20) + 3 - 60000, 7)});
    test::write_dataset<std::uint16_t>(prefix_, documents);
    const auto bin = test::read_bytes(bin_path_);
    const auto idx = test::read_bytes(idx_path_);
    sum_ = formats::encode_sum(bin.size(), blocks_of(bin), idx.size(), blocks_of(idx));
    test::write_bytes(sum_path_, sum_);
  }

  std::string fault() const {
    try {
      (void)verify_sums(prefix_);
    } catch (const format_error& e) {
      return e.what();
    }
    return "";
  }

  /// Returns the message of the fault that is found if one byte of `path` is altered.
  std::string fault_of_byte(const std::filesystem::path& path, std::size_t at) const {
    const auto whole = test::read_bytes(path);
    auto altered = whole;
    altered[at] ^= std::byte{1};
    test::write_bytes(path, altered);
    std::string found = fault();
    test::write_bytes(path, whole);
    return found;
  }

  test::temp_folder folder_;
  std::filesystem::path prefix_ = folder_ / "data";
  std::filesystem::path bin_path_ = folder_ / "data.bin";
  std::filesystem::path idx_path_ = folder_ / "data.idx";
  std::filesystem::path sum_path_ = folder_ / "data.sum";
  std::vector<std::byte> sum_;
};

TEST_F(VerifySums, GivesTheRootOfASoundDataset) {
  const auto sums = verify_sums(prefix_);
  ASSERT_TRUE(sums);
  EXPECT_EQ(sums->root, formats::sha256_hex(std::span(sum_).first(sum_.size() - 32)));
  EXPECT_TRUE(sums->are_original);
}

TEST_F(VerifySums, GivesNothingWithoutASum) {
  std::filesystem::remove(sum_path_);
  EXPECT_FALSE(verify_sums(prefix_));
}

TEST_F(VerifySums, NamesTheFirstBlockThatIsAnother) {
  EXPECT_THAT(fault_of_byte(bin_path_, 0),
              HasSubstr("data.bin: the 1048576 bytes up to byte 1048576 differ from those that"));
  EXPECT_THAT(fault_of_byte(bin_path_, (1 << 20) - 1), HasSubstr("(at byte 0)"));
  EXPECT_THAT(fault_of_byte(bin_path_, 1 << 20), HasSubstr("(at byte 1048576)"));
  EXPECT_THAT(
      fault_of_byte(bin_path_, (2 << 20) + 5),
      HasSubstr("data.bin: the 6 bytes up to byte 2097158 differ from those that were written"));
  const std::size_t idx_size = test::read_bytes(idx_path_).size();
  EXPECT_GT(idx_size, std::size_t{1} << 20);
  EXPECT_THAT(fault_of_byte(idx_path_, idx_size - 1), HasSubstr("data.idx: the "));
  EXPECT_EQ(fault(), "");
}

TEST_F(VerifySums, NamesAFileOfAnotherSize) {
  std::filesystem::resize_file(bin_path_, (2 << 20) + 5);
  EXPECT_THAT(fault(),
              HasSubstr("data.bin: the file has 2097157 bytes, expected 2097158, as when its "
                        "checksums were written (at byte 2097157)"));
}

TEST_F(VerifySums, NamesASumThatIsBroken) {
  EXPECT_THAT(fault_of_byte(sum_path_, 33), HasSubstr("data.sum: the root does not match"));
  std::filesystem::resize_file(sum_path_, 10);
  EXPECT_THAT(fault(), HasSubstr("data.sum: file ends inside the version"));
}

TEST_F(VerifySums, NamesAFileThatIsMissing) {
  std::filesystem::remove(bin_path_);
  EXPECT_THROW((void)verify_sums(prefix_), io_error);
}

// Two blocks are damaged. Whichever thread finishes first, the first block is named.
TEST_F(VerifySums, NamesTheFirstBlockWithAnyNumberOfWorkers) {
  auto altered = test::read_bytes(bin_path_);
  altered[(1 << 20) + 7] ^= std::byte{1};
  altered[(2 << 20) + 1] ^= std::byte{1};
  test::write_bytes(bin_path_, altered);
  for (const int workers : {1, 2, 3, 16}) {
    SCOPED_TRACE(workers);
    for (int repeat = 0; repeat < 20; ++repeat) {
      try {
        (void)verify_sums(prefix_, {.workers = workers});
        ADD_FAILURE() << "accepted";
      } catch (const format_error& e) {
        EXPECT_EQ(e.path(), bin_path_);
        EXPECT_EQ(e.offset(), std::uint64_t{1} << 20);
      }
    }
  }
}

TEST_F(VerifySums, ReportsAllBytesAsProgress) {
  const auto size = test::read_bytes(bin_path_).size() + test::read_bytes(idx_path_).size();
  for (const int workers : {1, 3}) {
    std::uint64_t last = 0;
    (void)verify_sums(prefix_, {.workers = workers, .progress = [&](std::uint64_t bytes) {
                                  EXPECT_GT(bytes, last);
                                  last = bytes;
                                }});
    EXPECT_EQ(last, size);
  }
}

TEST_F(VerifySums, StopsIfProgressThrows) {
  EXPECT_THROW((void)verify_sums(
                   prefix_, {.workers = 2,
                             .progress = [](std::uint64_t) { throw std::runtime_error("stop"); }}),
               std::runtime_error);
}

// --- verify_tokens ----------------------------------------------------------------------------

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

// A thread checks a mebibyte at a time. The first bad token is named, in whichever block it is.
TEST(VerifyTokens, NamesTheFirstWithAnyNumberOfWorkers) {
  const test::temp_folder folder;
  constexpr std::size_t block = (1 << 20) / sizeof(std::int32_t);
  for (const std::size_t at : {std::size_t{0}, block - 1, block, 2 * block + 3}) {
    std::vector<std::int32_t> tokens(3 * block - 5, 7);
    tokens[at] = 8;
    tokens.back() = -1;
    test::write_dataset<std::int32_t>(folder / "data", {{{1, 2}}, {tokens}});
    for (const int workers : {1, 2, 16}) {
      SCOPED_TRACE(testing::Message() << at << " with " << workers);
      try {
        verify_tokens(indexed_dataset(folder / "data", full), 8, {.workers = workers});
        ADD_FAILURE() << "accepted";
      } catch (const format_error& e) {
        EXPECT_EQ(e.problem(),
                  "token " + std::to_string(at) + " of sequence 1 is 8, expected 0 to 7");
        EXPECT_EQ(e.offset(), 4 * (at + 2));
      }
    }
  }
}

// A part of the file that is gone is an error of the file, not a token 0.
TEST(VerifyTokens, NamesAFileThatShrank) {
  const test::temp_folder folder;
  test::write_dataset<std::uint16_t>(folder / "data", {{std::vector<std::uint16_t>(1 << 20, 7)}});
  const indexed_dataset data(folder / "data", full);
  std::filesystem::resize_file(folder / "data.bin", 1 << 12);
  EXPECT_THROW(verify_tokens(data, 8, {.workers = 2}), io_error);
}

}  // namespace
}  // namespace millrace::dataset
