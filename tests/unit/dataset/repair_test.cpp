// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/repair.hpp>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <tuple>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/error.hpp>
#include <millrace/formats/mmidx.hpp>

#include "support/paths.hpp"

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

}  // namespace
}  // namespace millrace::dataset
