// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/verify_sums.hpp>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "support/encode_sidecars.hpp"
#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;

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
    sum_ = test::encode_sum(bin.size(), blocks_of(bin), idx.size(), blocks_of(idx));
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
  EXPECT_EQ(verify_sums(prefix_), formats::sha256_hex(std::span(sum_).first(sum_.size() - 32)));
}

TEST_F(VerifySums, GivesNothingWithoutASum) {
  std::filesystem::remove(sum_path_);
  EXPECT_EQ(verify_sums(prefix_), std::nullopt);
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
  EXPECT_THAT(fault(), HasSubstr("data.bin: the file has 2097157 bytes, but had 2097158 when its "
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

}  // namespace
}  // namespace millrace::dataset
