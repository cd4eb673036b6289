// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/packing/document_lengths.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;

constexpr index_access both_accesses[] = {index_access::map_with_read_ahead, index_access::pread};

class DocumentLengths : public testing::Test {
 protected:
  /// Writes documents that have a few sequences or none. One document has more sequences than one
  /// read returns.
  void SetUp() override {
    std::mt19937_64 random(test::seed(6));
    for (int d = 0; d < 300; ++d) {
      const std::uint64_t sequences = d == 200 ? 150'000 : random() % 4;
      for (std::uint64_t i = 0; i < sequences; ++i) {
        lengths_.push_back(static_cast<std::int32_t>(random() % 100));
      }
      ends_.push_back(std::ssize(lengths_));
    }
    write();
  }
  void write() const {
    const std::int64_t tokens = std::accumulate(lengths_.begin(), lengths_.end(), std::int64_t{0});
    test::write_bytes(folder_ / "data.idx",
                      formats::encode_mmidx(formats::dtype::uint16, lengths_, ends_));
    test::write_text(folder_ / "data.bin", "");
    std::filesystem::resize_file(folder_ / "data.bin", 2 * static_cast<std::uint64_t>(tokens));
  }
  /// Overwrites the value at a byte offset of the index.
  template <class T>
  void alter(std::uint64_t offset, T value) const {
    auto bytes = test::read_bytes(folder_ / "data.idx");
    std::memcpy(bytes.data() + offset, &value, sizeof(T));
    test::write_bytes(folder_ / "data.idx", bytes);
  }
  /// Returns the error message for documents 100 to 250, or "none".
  std::string refusal(index_access access) const {
    const index_columns columns(folder_ / "data", access);
    std::vector<std::int64_t> found;
    try {
      document_lengths(columns, 100, 250, found);
    } catch (const format_error& e) {
      return e.what();
    }
    return "none";
  }

  test::temp_folder folder_;
  std::vector<std::int32_t> lengths_;
  std::vector<std::int64_t> ends_ = {0};
};

TEST_F(DocumentLengths, AreSumsOverSequences) {
  std::mt19937_64 random(test::seed(7));
  for (const index_access access : both_accesses) {
    const index_columns columns(folder_ / "data", access);
    for (int round = 0; round < 200; ++round) {
      const auto first = static_cast<std::int64_t>(random() % 301);
      const std::int64_t last = first + static_cast<std::int64_t>(random()) % (301 - first) / 2;
      if (last < first) continue;
      std::vector<std::int64_t> expected;
      for (auto d = static_cast<std::size_t>(first); d < static_cast<std::size_t>(last); ++d) {
        expected.push_back(std::accumulate(lengths_.begin() + ends_[d],
                                           lengths_.begin() + ends_[d + 1], std::int64_t{0}));
      }
      std::vector<std::int64_t> found = {7, 7};
      document_lengths(columns, first, last, found);
      ASSERT_EQ(found, expected) << first << " to " << last;
    }
  }
}

TEST_F(DocumentLengths, ComeInOrderHoweverManyAreReadAtOnce) {
  for (const index_access access : both_accesses) {
    const index_columns columns(folder_ / "data", access);
    for (const std::int64_t most : {1, 3, 64, 1000}) {
      const document_range of{50, 250};
      std::vector<std::int64_t> found;
      const bool asked = with_lengths(columns, of, most, [&](const auto& length_of) {
        for (std::int64_t i = of.first; i < of.last; ++i) found.push_back(length_of(i));
        return true;
      });
      EXPECT_TRUE(asked);
      EXPECT_EQ(found,
                std::vector<std::int64_t>(lengths_.begin() + of.first, lengths_.begin() + of.last));
    }
  }
}

TEST_F(DocumentLengths, NameTheEntryThatIsWrong) {
  const std::uint64_t pointers = formats::mmidx_header_bytes + 4 * lengths_.size();
  const std::uint64_t documents = pointers + 8 * lengths_.size();
  const auto expect = [&](const std::string& what) {
    for (const index_access access : both_accesses) {
      EXPECT_THAT(refusal(access), HasSubstr(what)) << static_cast<int>(access);
    }
    write();
  };
  expect("none");
  // This sequence is in the middle of a document that is read in several parts.
  const auto i = static_cast<std::size_t>(ends_[200]) + 100'000;
  alter<std::int32_t>(formats::mmidx_header_bytes + 4 * i, -5);
  expect("length of sequence " + std::to_string(i) + " is -5, expected 0 or more");

  const std::string count = std::to_string(lengths_.size());
  for (const std::int64_t end : {std::int64_t{-1}, std::int64_t{0}, std::int64_t{1} << 40}) {
    alter<std::int64_t>(documents + 8UL * 151, end);  // where document 150 ends
    expect("document 150 covers sequences " + std::to_string(ends_[150]) + " up to " +
           std::to_string(end) + ", expected an ascending range within 0 to " + count);
    // This entry is the start of document 100, so it is the first boundary of the range.
    alter<std::int64_t>(documents + 8UL * 100, end);
    expect(end == 0 ? "none" : "document 100 covers sequences " + std::to_string(end));
    alter<std::int64_t>(documents + 8UL * 250, end);
    expect("document 249 covers sequences ");
  }
}

TEST_F(DocumentLengths, SayThatTheFileBecameShorter) {
  const index_columns columns(folder_ / "data", index_access::pread);
  std::vector<std::int64_t> found;
  document_lengths(columns, 100, 250, found);
  const auto whole = std::filesystem::file_size(folder_ / "data.idx");
  for (const std::uint64_t size : {whole - 8UL * 100, std::uint64_t{400'000}, std::uint64_t{0}}) {
    std::filesystem::resize_file(folder_ / "data.idx", size);
    try {
      document_lengths(columns, 100, 250, found);
      ADD_FAILURE() << "not refused";
    } catch (const format_error& e) {
      EXPECT_THAT(e.what(), HasSubstr("data.idx: the file became shorter while it was in use"));
    }
  }
}

}  // namespace
}  // namespace millrace::dataset
