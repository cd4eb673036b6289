// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/repair.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/detail/sha256.hpp>
#include <millrace/formats/mmidx.hpp>
#include <millrace/formats/sum.hpp>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;

/// Megatron's idx_uint16_3docs with its checksums: the lengths 3, 2, 3 are at byte 34, the pointers
/// 0, 6, 10 at 46, the document index 0, 1, 1, 3 at 70.
class RepairPointers : public testing::Test {
 protected:
  RepairPointers() {
    for (const char* suffix : {".bin", ".idx"}) {
      std::filesystem::copy_file(test::golden(std::string("megatron/idx_uint16_3docs") + suffix),
                                 folder_ / (std::string("data") + suffix));
    }
    original_ = test::read_bytes(idx_);
  }

  void add_sum() {
    std::filesystem::copy_file(test::golden("sidecars/idx_uint16_3docs.sum"), folder_ / "data.sum");
  }

  template <class T>
  void put(std::size_t at, T value) {
    auto bytes = test::read_bytes(idx_);
    std::memcpy(bytes.data() + at, &value, sizeof(value));
    test::write_bytes(idx_, bytes);
  }

  /// Returns the message of a refusal. Nothing may be written.
  std::string refusal() {
    const auto before = test::read_bytes(idx_);
    std::string what = "repaired";
    try {
      (void)repair_pointers(prefix_);
    } catch (const format_error& e) {
      what = e.what();
    }
    EXPECT_EQ(test::read_bytes(idx_), before);
    EXPECT_FALSE(std::filesystem::exists(folder_ / "data.idx.repaired"));
    EXPECT_FALSE(std::filesystem::exists(folder_ / "data.idx.repaired.partial"));
    return what;
  }

  test::temp_folder folder_;
  std::filesystem::path prefix_ = folder_ / "data";
  std::filesystem::path idx_ = folder_ / "data.idx";
  std::vector<std::byte> original_;
};

// Whatever pointers are wrong, the result is the file that Megatron wrote.
TEST_F(RepairPointers, GivesMegatronsBytesBack) {
  for (const bool has_sum : {false, true}) {
    if (has_sum) add_sum();
    for (unsigned wrong = 1; wrong < 8; ++wrong) {
      SCOPED_TRACE(testing::Message() << "pointers " << wrong << ", .sum " << has_sum);
      test::write_bytes(idx_, original_);
      for (std::size_t i = 0; i < 3; ++i) {
        if ((wrong >> i & 1) != 0) put<std::int64_t>(46 + 8 * i, -7);
      }
      const auto damaged = test::read_bytes(idx_);
      const pointer_repair done = repair_pointers(prefix_);
      EXPECT_EQ(done.path, folder_ / "data.idx.repaired");
      EXPECT_EQ(done.changed, __builtin_popcount(wrong));
      EXPECT_EQ(done.sequences, 3);
      EXPECT_EQ(done.proven, has_sum);
      EXPECT_EQ(test::read_bytes(done.path), original_);
      EXPECT_EQ(test::read_bytes(idx_), damaged) << "the original must not change";
      std::filesystem::remove(done.path);
    }
  }
}

TEST_F(RepairPointers, WritesNothingIfAllPointersAreRight) {
  const pointer_repair done = repair_pointers(prefix_);
  EXPECT_TRUE(done.path.empty());
  EXPECT_EQ(done.changed, 0);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "data.idx.repaired"));
}

TEST_F(RepairPointers, RefusesIfTheLengthsDoNotFillTheBin) {
  put<std::int64_t>(54, 4);
  put<std::int32_t>(38, 1);
  EXPECT_THAT(refusal(), HasSubstr("data.bin: the file has 16 bytes, expected 14, the sum of the "
                                   "lengths; not repaired, because a repair would have to guess"));
  put<std::int32_t>(38, -2);
  EXPECT_THAT(refusal(), HasSubstr("data.idx: length of sequence 1 is -2, expected 0 or more"));
}

TEST_F(RepairPointers, RefusesADamagedDocumentIndex) {
  put<std::int64_t>(54, 4);
  for (const auto& [at, value, what] : std::vector<std::tuple<std::size_t, int, std::string>>{
           {70, 1, "entry 0 of the document index is 1, expected 0 to 0"},
           {78, 4, "entry 1 of the document index is 4, expected 0 to 3"},
           {86, 0, "entry 2 of the document index is 0, expected 1 to 3"},
           {94, 2, "entry 3 of the document index is 2, expected 3 to 3"}}) {
    test::write_bytes(idx_, original_);
    put<std::int64_t>(54, 4);
    put<std::int64_t>(at, value);
    EXPECT_THAT(refusal(), HasSubstr(what));
  }
}

// The lengths still fill the .bin, so only the checksums show that they are not the original ones.
TEST_F(RepairPointers, RefusesWhatTheChecksumsContradict) {
  put<std::int64_t>(54, -7);
  put<std::int32_t>(34, 2);
  put<std::int32_t>(38, 3);
  add_sum();
  EXPECT_THAT(refusal(),
              HasSubstr("data.idx: the 102 bytes up to byte 102 differ from those that"));
  std::filesystem::remove(folder_ / "data.sum");
  EXPECT_FALSE(repair_pointers(prefix_).proven);
}

TEST_F(RepairPointers, RefusesACutIndex) {
  std::filesystem::resize_file(idx_, 90);
  EXPECT_THAT(refusal(), HasSubstr("data.idx: "));
  std::filesystem::resize_file(idx_, 0);
  EXPECT_THAT(refusal(), HasSubstr("data.idx: "));
}

// The pointers of a larger index are written in several pieces.
TEST_F(RepairPointers, RepairsMoreThanOnePiece) {
  const std::size_t count = (1 << 17) + 3;
  std::vector<std::int32_t> lengths(count);
  for (std::size_t i = 0; i < count; ++i) lengths[i] = static_cast<std::int32_t>(i % 3);
  std::int64_t tokens = 0;
  for (const auto length : lengths) tokens += length;
  const std::vector<std::int64_t> documents = {0, static_cast<std::int64_t>(count)};
  const auto whole = formats::encode_mmidx(formats::dtype::uint16, lengths, documents);
  test::write_bytes(folder_ / "data.bin",
                    std::vector<std::byte>(2 * static_cast<std::size_t>(tokens)));
  auto damaged = whole;
  std::memset(damaged.data() + 34 + 4 * count, 0xff, 8 * count);
  test::write_bytes(idx_, damaged);
  const pointer_repair done = repair_pointers(prefix_);
  EXPECT_EQ(done.changed, static_cast<std::int64_t>(count));
  EXPECT_EQ(test::read_bytes(done.path), whole);
}

/// Three MiB of tokens and an index of more than one, with checksums.
class RepairChecksums : public testing::Test {
 protected:
  RepairChecksums() {
    test::documents_of<std::uint16_t> documents(70000, {{1, 2, 3}});
    documents.push_back({std::vector<std::uint16_t>(1 << 20, 7)});
    test::write_dataset<std::uint16_t>(prefix_, documents);
    original_ = repair_checksums(prefix_, std::nullopt).path;
    sum_ = test::read_bytes(original_);
    // As the writer of the dataset would have written it.
    sum_[8] = std::byte{1};
    const auto root = formats::sha256().update(std::span(sum_).first(sum_.size() - 32)).finish();
    std::ranges::copy(std::as_bytes(std::span(root)), sum_.end() - 32);
    test::write_bytes(sum_path_, sum_);
    std::filesystem::remove(original_);
  }

  void change(const std::filesystem::path& path, std::size_t at) {
    auto bytes = test::read_bytes(path);
    bytes.at(at) ^= std::byte{1};
    test::write_bytes(path, bytes);
  }
  std::string root() const { return formats::root_hex(formats::parse_sum(sum_)); }

  test::temp_folder folder_;
  std::filesystem::path prefix_ = folder_ / "data";
  std::filesystem::path bin_ = folder_ / "data.bin";
  std::filesystem::path sum_path_ = folder_ / "data.sum";
  std::filesystem::path original_;
  std::vector<std::byte> sum_;
};

TEST_F(RepairChecksums, LeavesRightOnes) {
  const checksum_repair done = repair_checksums(prefix_, std::nullopt);
  EXPECT_TRUE(done.path.empty());
  EXPECT_EQ(done.changed, 0);
  EXPECT_EQ(done.blocks, 5);
  EXPECT_EQ(done.root, root());
  EXPECT_TRUE(done.proven);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "data.sum.repaired"));
}

// With the root, a lost or broken .sum comes back byte for byte.
TEST_F(RepairChecksums, GivesALostFileBack) {
  for (const bool is_there : {false, true}) {
    if (is_there) change(sum_path_, 40);
    if (!is_there) std::filesystem::remove(sum_path_);
    const auto before = is_there ? test::read_bytes(sum_path_) : std::vector<std::byte>();
    const checksum_repair done = repair_checksums(prefix_, root());
    EXPECT_TRUE(done.proven);
    EXPECT_EQ(done.root, root());
    EXPECT_EQ(done.changed, 5);
    EXPECT_EQ(test::read_bytes(done.path), sum_);
    if (is_there) {
      EXPECT_EQ(test::read_bytes(sum_path_), before);
    }
    test::write_bytes(sum_path_, sum_);
  }
}

// Whoever knows the root of other bytes, or none, cannot know what was there before.
TEST_F(RepairChecksums, SaysThatEarlierChangesAreUnknown) {
  change(bin_, (1 << 20) + 5);
  for (const int workers : {1, 3}) {
    for (const auto& known : {std::optional<std::string>(), std::optional(root())}) {
      const checksum_repair done = repair_checksums(prefix_, known, {.workers = workers});
      EXPECT_FALSE(done.proven);
      EXPECT_EQ(done.changed, 1);
      const auto file = test::read_bytes(done.path);
      const auto sum = formats::parse_sum(file);
      EXPECT_EQ(sum.version, formats::sum_version_repaired);
      EXPECT_EQ(formats::root_hex(sum), done.root);
      EXPECT_NE(done.root, root());
    }
  }
  EXPECT_EQ(test::read_bytes(sum_path_), sum_);
  EXPECT_THROW((void)verify_sums(prefix_), format_error);
  std::filesystem::rename(folder_ / "data.sum.repaired", sum_path_);
  const auto sums = verify_sums(prefix_);
  ASSERT_TRUE(sums);
  EXPECT_FALSE(sums->are_original);
}

// A repair does not turn into proof by being repeated, but by the root.
TEST_F(RepairChecksums, KeepsWhatItSaid) {
  std::filesystem::remove(sum_path_);
  std::filesystem::rename(repair_checksums(prefix_, std::nullopt).path, sum_path_);
  const checksum_repair again = repair_checksums(prefix_, std::nullopt);
  EXPECT_TRUE(again.path.empty());
  EXPECT_FALSE(again.proven);
  EXPECT_EQ(test::read_bytes(repair_checksums(prefix_, root()).path), sum_);
}

TEST_F(RepairChecksums, RefusesADamagedIndex) {
  change(folder_ / "data.idx", 40);
  EXPECT_THROW((void)repair_checksums(prefix_, std::nullopt), format_error);
  EXPECT_FALSE(std::filesystem::exists(folder_ / "data.sum.repaired"));
}

}  // namespace
}  // namespace millrace::dataset
