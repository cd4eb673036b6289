// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/instant/index_columns.hpp>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/io/file_mapping.hpp>

#include "support/child_process.hpp"
#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr index_access all_accesses[] = {index_access::map_if_possible,
                                         index_access::map_with_read_ahead, index_access::pread};

/// Returns the message of the error that `work` throws, or "none".
template <class Work>
std::string fault(const Work& work) {
  try {
    work();
  } catch (const error& e) {
    return e.what();
  }
  return "none";
}

/// Returns the io_error that `work` throws because a page of the file is lost.
template <class Work>
io_error lost_by(const Work& work) {
  try {
    work();
  } catch (const io_error& e) {
    return e;
  }
  return {"none", "none", 0};
}

class IndexColumns : public testing::Test {
 protected:
  void SetUp() override {
    test::write_dataset<std::uint16_t>(prefix_, {{{1, 2, 3}, {}}, {{4, 5}}, {}, {{6, 7, 8, 9}}});
  }

  test::temp_folder folder_;
  std::filesystem::path prefix_ = folder_ / "data";
};

void expect_as_dataset(const index_columns& columns, const indexed_dataset& data) {
  EXPECT_EQ(columns.prefix(), data.prefix());
  EXPECT_EQ(columns.idx_path(), data.idx_path());
  EXPECT_EQ(columns.idx_size_bytes(), data.idx_size_bytes());
  EXPECT_EQ(columns.bin_size_bytes(), data.bin_size_bytes());
  EXPECT_EQ(columns.type(), data.type());
  EXPECT_EQ(columns.token_count(), data.token_count());
  ASSERT_EQ(columns.sequence_count(), data.sequence_count());
  ASSERT_EQ(columns.document_count(), data.document_count());
}

TEST_F(IndexColumns, SayWhatTheDatasetSays) {
  const indexed_dataset data(prefix_);
  expect_as_dataset(index_columns(data), data);
  for (const index_access access : all_accesses) {
    const index_columns columns(prefix_, access);
    EXPECT_EQ(columns.is_mapped(), access != index_access::pread);
    expect_as_dataset(columns, data);
    std::vector<std::byte> scratch;
    EXPECT_THAT(columns.lengths(0, 4, scratch).to_vector(), ElementsAre(3, 0, 2, 4));
    EXPECT_THAT(columns.lengths(2, 2, scratch).to_vector(), ElementsAre(2, 4));
    EXPECT_THAT(columns.lengths(4, 0, scratch).to_vector(), ElementsAre());
    EXPECT_THAT(columns.document_starts(0, 5, scratch).to_vector(), ElementsAre(0, 2, 3, 3, 4));
    EXPECT_THAT(columns.document_starts(3, 2, scratch).to_vector(), ElementsAre(3, 4));
  }
  const std::vector<std::int8_t> modes = {1, 0};
  test::write_dataset<std::uint16_t>(prefix_, {{{1}, {2}}}, modes);
  const indexed_dataset with_modes(prefix_);
  expect_as_dataset(index_columns(prefix_), with_modes);
}

// If any byte of an index is altered, the dataset and the columns refuse the same entries with the
// same messages.
TEST_F(IndexColumns, RefuseWhatTheDatasetRefuses) {
  const auto whole = test::read_bytes(folder_ / "data.idx");
  int refused = 0;
  for (std::size_t i = 0; i < whole.size(); ++i) {
    for (const int flip : {1, 2, 0x40, 0x80, 0xff}) {
      auto bytes = whole;
      bytes[i] ^= static_cast<std::byte>(flip);
      test::write_bytes(folder_ / "data.idx", bytes);
      const std::string expected = fault([&] { (void)indexed_dataset(prefix_); });
      for (const index_access access : all_accesses) {
        ASSERT_EQ(fault([&] { (void)index_columns(prefix_, access); }), expected) << i;
        if (expected != "none") continue;
        const indexed_dataset data(prefix_);
        const index_columns columns(prefix_, access);
        for (std::int64_t d = 0; d < data.document_count(); ++d) {
          const std::string wrong = fault([&] { (void)data.document(d); });
          refused += wrong != "none";
          ASSERT_EQ(fault([&] { EXPECT_EQ(columns.document(d), data.document(d)); }), wrong);
        }
        for (std::int64_t s = 0; s < data.sequence_count(); ++s) {
          const std::string wrong = fault([&] { (void)data.sequence_length(s); });
          refused += wrong != "none";
          ASSERT_EQ(fault([&] { EXPECT_EQ(columns.sequence_length(s), data.sequence_length(s)); }),
                    wrong);
        }
      }
    }
  }
  EXPECT_GT(refused, 100);
}

// The .bin is refused if the last sequence ends where the .bin ends, but starts inside a token.
TEST_F(IndexColumns, RefuseABinOfPartsOfTokens) {
  auto bytes = test::read_bytes(folder_ / "data.idx");
  const std::size_t last_pointer = formats::mmidx_header_bytes + 4UL * 4 + 8UL * 3;
  bytes[last_pointer] ^= std::byte{1};
  test::write_bytes(folder_ / "data.idx", bytes);
  std::filesystem::resize_file(folder_ / "data.bin", 19);
  for (const index_access access : all_accesses) {
    const std::string said = fault([&] { (void)index_columns(prefix_, access); });
    EXPECT_THAT(said, HasSubstr("data.idx: sequence 3 of 4 tokens starts at byte 11, expected a "
                                "multiple of 2"));
    EXPECT_EQ(said, fault([&] { (void)indexed_dataset(prefix_); }));
  }
}

TEST_F(IndexColumns, AskForAPrefix) {
  for (const char* name : {"data.idx", "data.bin", "data.sum"}) {
    const std::string said = fault([&] { (void)index_columns(folder_ / name); });
    EXPECT_THAT(said, HasSubstr("pass the dataset prefix without "));
    EXPECT_EQ(said, fault([&] { (void)indexed_dataset(folder_ / name); }));
  }
}

TEST_F(IndexColumns, SayThatTheFileBecameShorter) {
  const index_columns columns(prefix_, index_access::pread);
  std::filesystem::resize_file(folder_ / "data.idx",
                               formats::mmidx_header_bytes + 4UL * 4 + 8UL * 4);
  std::vector<std::byte> scratch;
  EXPECT_THAT(columns.lengths(0, 4, scratch).to_vector(), ElementsAre(3, 0, 2, 4));
  const std::string shorter = "data.idx: the file became shorter while it was in use";
  EXPECT_THAT(fault([&] { (void)columns.document_starts(1, 2, scratch); }), HasSubstr(shorter));
  EXPECT_THAT(fault([&] { (void)columns.document(2); }), HasSubstr(shorter));
}

// If the file shrinks, the kernel reports lost pages with SIGBUS. The columns then throw an error,
// and the process survives.
TEST_F(IndexColumns, OutliveAFileThatShrinks) {
  const test::documents_of<std::uint16_t> many(9000, {std::vector<std::uint16_t>(3)});
  const std::filesystem::path other = folder_ / "other";
  for (const auto& prefix : {prefix_, other}) test::write_dataset<std::uint16_t>(prefix, many);
  for (const index_access access :
       {index_access::map_if_possible, index_access::map_with_read_ahead}) {
    const index_columns beside(other, access);
    index_columns opened(prefix_, access);
    const index_columns columns = std::move(opened);
    ASSERT_TRUE(columns.is_mapped());
    EXPECT_EQ(columns.pointer(8999), 8999 * 6);
    std::filesystem::resize_file(columns.idx_path(), 4096);
    EXPECT_EQ(columns.length(0), 3);
    const io_error e = lost_by([&] { (void)columns.pointer(8999); });
    EXPECT_EQ(e.code(), ENODATA);
    EXPECT_EQ(e.path(), columns.idx_path());
    EXPECT_EQ(e.offset(), columns.pointer_offset(8999));
    // After a page is lost, every later access fails, to any entry. Otherwise, a reader could
    // mistake the zeros of a lost page for data.
    EXPECT_EQ(lost_by([&] { (void)columns.pointer(8999); }).code(), ENODATA);
    EXPECT_EQ(lost_by([&] { (void)columns.length(0); }).code(), ENODATA);
    std::vector<std::int32_t> all(9000);
    EXPECT_EQ(lost_by([&] { columns.read_lengths(all); }).code(), ENODATA);
    // Columns of another file keep their values. Columns that are opened later see the new file.
    EXPECT_EQ(beside.pointer(8999), 8999 * 6);
    test::write_dataset<std::uint16_t>(prefix_, many);
    EXPECT_EQ(index_columns(prefix_, access).pointer(8999), 8999 * 6);
  }
}

// The library does not handle a SIGBUS from a mapping that it does not watch.
TEST_F(IndexColumns, LeaveTheSignalsOfOthersAlone) {
  const index_columns columns(prefix_);
  const auto path = folder_ / "others";
  test::write_bytes(path, std::vector<std::byte>(10'000));
  const int status = test::in_child([&] {
    const io::file_mapping map(path);
    std::filesystem::resize_file(path, 0);
    return static_cast<int>(map.bytes()[5000]);
  });
  EXPECT_NE(status, 0);  // 1000 + SIGBUS, or the exit status of a sanitizer
}

}  // namespace
}  // namespace millrace::dataset
