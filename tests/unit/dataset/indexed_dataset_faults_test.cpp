// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/formats/detail/mmidx_verify.hpp>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

/// Runs one access and returns whether it succeeded. Fails the test on any error except a
/// format_error that names a file and a byte offset inside this file.
bool works(const indexed_dataset& data, const std::function<void()>& access) {
  try {
    access();
    return true;
  } catch (const format_error& e) {
    EXPECT_EQ(e.path(), data.idx_path()) << e.what();
    EXPECT_LT(e.offset(), data.idx_size_bytes()) << e.what();
    return false;
  }
}

void read_all(const indexed_dataset& data, const token_view& view) {
  const auto all = data.bin_size_bytes() == 0 ? nullptr : data.stream().bytes().data();
  if (!view.empty()) {
    ASSERT_GE(view.bytes().data(), all);
    ASSERT_LE(view.bytes().data() + view.bytes().size(), all + data.bin_size_bytes());
  }
  double sum = 0;
  for (std::int64_t i = 0; i < view.size(); ++i) sum += view.as_double(i);
  (void)sum;
}

/// Tries every kind of access. Returns whether all of them succeeded.
bool walk(const indexed_dataset& data) {
  bool all = true;
  for (std::int64_t i = 0; i < data.sequence_count(); ++i) {
    all &= works(data, [&] {
      const token_view tokens = data.sequence(i);
      EXPECT_EQ(tokens.size(), data.sequence_length(i));
      read_all(data, tokens);
      formats::with_type(data.type(), [&]<class T>(T) { (void)data.tokens<T>(i); });
    });
    if (data.is_multimodal()) (void)data.mode(i);
  }
  for (std::int64_t d = 0; d < data.document_count(); ++d) {
    all &= works(data, [&] {
      const document_range range = data.document(d);
      EXPECT_LE(0, range.first);
      EXPECT_LE(range.first, range.last);
      EXPECT_LE(range.last, data.sequence_count());
    });
    all &= works(data, [&] { read_all(data, data.document_tokens(d)); });
  }
  read_all(data, data.stream());
  return all;
}

/// Opens and reads the dataset. Whatever the index contains, each access must succeed or throw a
/// format_error.
void open_and_walk(const std::filesystem::path& prefix) {
  try {
    const indexed_dataset data(prefix);
    const bool all_work = walk(data);
    formats::verify_mmidx(data.index(), data.bin_size_bytes());  // what check_level::full does
    EXPECT_TRUE(all_work) << "the full check passes, so every access must work";
  } catch (const format_error& e) {
    EXPECT_FALSE(e.problem().empty());
  }
}

/// An index of four sequences with 3, 0, 2 and 3 tokens. The lengths begin at byte 34, the pointers
/// at byte 50, and the document index at byte 82.
class IndexOnDisk : public testing::Test {
 protected:
  void write(const std::vector<std::int8_t>& modes) {
    test::write_dataset<std::uint16_t>(prefix_, {{{1, 2, 3}}, {}, {{}, {4, 5}}, {{6, 7, 8}}},
                                       modes);
    whole_ = test::read_bytes(idx_);
  }

  const test::temp_folder folder_;
  const std::filesystem::path prefix_ = folder_ / "data";
  const std::filesystem::path idx_ = folder_ / "data.idx";
  std::vector<std::byte> whole_;
};

/// The parameter is true for a multimodal dataset.
class DamagedIndex : public IndexOnDisk, public testing::WithParamInterface<bool> {
 protected:
  DamagedIndex() {
    write(GetParam() ? std::vector<std::int8_t>{0, 1, 0, 1} : std::vector<std::int8_t>());
  }
};
INSTANTIATE_TEST_SUITE_P(Multimodal, DamagedIndex, testing::Bool(),
                         testing::PrintToStringParamName());

TEST_P(DamagedIndex, IsRefusedCutOff) {
  for (std::size_t size = 0; size < whole_.size(); ++size) {
    SCOPED_TRACE(testing::Message() << "first " << size << " of " << whole_.size() << " bytes");
    test::write_bytes(idx_, std::span(whole_).first(size));
    // One of the truncations removes exactly the modes. What is left is a complete index of a text
    // dataset.
    if (GetParam() && size + 4 == whole_.size()) {
      EXPECT_FALSE(indexed_dataset(prefix_).is_multimodal());
    } else {
      EXPECT_THROW(indexed_dataset{prefix_}, format_error);
    }
    open_and_walk(prefix_);
  }
}

TEST_P(DamagedIndex, NeverCrashesWithAnAlteredByte) {
  // Alter the bytes in place: rewriting the whole file for each byte would wait for the disk each
  // time.
  std::fstream file(idx_, std::ios::in | std::ios::out | std::ios::binary);
  const auto put = [&](std::size_t at, std::byte value) {
    file.seekp(static_cast<std::streamoff>(at));
    file.put(static_cast<char>(value)).flush();
    ASSERT_TRUE(file.good());
  };
  for (std::size_t at = 0; at < whole_.size(); ++at) {
    for (unsigned flip = 1; flip < 256; ++flip) {
      SCOPED_TRACE(testing::Message() << "byte " << at << " ^ " << flip);
      put(at, whole_[at] ^ static_cast<std::byte>(flip));
      open_and_walk(prefix_);
      if (HasFailure()) return;
    }
    put(at, whole_[at]);
  }
}

TEST_P(DamagedIndex, IsRefusedWithBytesBehindItsEnd) {
  for (const std::size_t extra : {1U, 2U, 3U, 5U, 100U}) {
    SCOPED_TRACE(extra);
    auto longer = whole_;
    longer.resize(whole_.size() + extra);
    test::write_bytes(idx_, longer);
    EXPECT_THROW(indexed_dataset{prefix_}, format_error);
  }
}

/// Returns the message and the byte offset of the format_error that `access` throws.
std::pair<std::string, std::uint64_t> fault_of(const std::function<void()>& access) {
  try {
    access();
  } catch (const format_error& e) {
    return {e.what(), e.offset()};
  }
  return {"no format_error", 0};
}

class FaultInTheMiddle : public IndexOnDisk {
 protected:
  FaultInTheMiddle() { write({}); }

  template <class T>
  void put(std::size_t at, T value) {
    std::memcpy(whole_.data() + at, &value, sizeof value);
    test::write_bytes(idx_, whole_);
  }
};

TEST_F(FaultInTheMiddle, IsNamedWhenItIsMet) {
  put<std::int32_t>(34 + 4, -1);
  put<std::int64_t>(50 + 8 * 2, 13);
  put<std::int64_t>(82 + 8 * 3, 0);
  const indexed_dataset data(prefix_);

  EXPECT_EQ(data.sequence(0).size(), 3);
  auto [what, offset] = fault_of([&] { (void)data.sequence_length(1); });
  EXPECT_EQ(offset, 38U);
  EXPECT_THAT(what, EndsWith("data.idx: length of sequence 1 is -1, expected 0 or more "
                             "(at byte 38)"));
  std::tie(what, offset) = fault_of([&] { (void)data.sequence(2); });
  EXPECT_EQ(offset, 66U);
  EXPECT_THAT(what, HasSubstr("sequence 2 of 2 tokens starts at byte 13, expected a multiple of 2 "
                              "from which it fits the 16 bytes of the .bin"));
  std::tie(what, offset) = fault_of([&] { (void)data.document(2); });
  EXPECT_EQ(offset, 106U);
  EXPECT_THAT(what, HasSubstr("document 2 covers sequences 1 up to 0"));
}

TEST_F(FaultInTheMiddle, BlamesTheDocumentStartThatIsOutside) {
  put<std::int64_t>(82 + 8 * 2, 9);
  const indexed_dataset data(prefix_);
  EXPECT_EQ(fault_of([&] { (void)data.document(1); }).second, 98U);
  EXPECT_EQ(fault_of([&] { (void)data.document(2); }).second, 98U);
}

TEST_F(FaultInTheMiddle, ShowsWhenPointersLeaveTheFile) {
  for (const std::int64_t pointer :
       {std::int64_t{-2}, std::int64_t{14}, std::int64_t{18},
        std::numeric_limits<std::int64_t>::min(), std::numeric_limits<std::int64_t>::max() - 1}) {
    SCOPED_TRACE(pointer);
    put<std::int64_t>(50 + 8 * 2, pointer);
    const indexed_dataset data(prefix_);
    EXPECT_EQ(fault_of([&] { (void)data.sequence(2); }).second, 66U);
  }
}

TEST_F(FaultInTheMiddle, ShowsWhenADocumentLiesApart) {
  put<std::int64_t>(50 + 8 * 2, 8);
  const indexed_dataset data(prefix_);
  EXPECT_EQ(data.sequence(2).size(), 2);
  EXPECT_EQ(fault_of([&] { (void)data.document_tokens(2); }).second, 66U);
  const auto fault = fault_of([&] {
    indexed_dataset{prefix_, open_options{.check = check_level::full}};
  });
  EXPECT_EQ(fault.second, 66U);
}

TEST_F(FaultInTheMiddle, RefusesAnEndBetweenTwoTokens) {
  put<std::int64_t>(50 + 8 * 3, 11);
  test::write_text(folder_ / "data.bin", std::string(17, 'x'));
  EXPECT_EQ(fault_of([&] { indexed_dataset{prefix_}; }).second, 74U);
}

TEST(IndexedDatasetFiles, RefusesABinOfAnotherSize) {
  const test::temp_folder folder;
  test::write_dataset<std::uint16_t>(folder / "data", {{{1, 2}}, {{3, 4}}});
  for (const std::size_t size : {0U, 1U, 7U, 9U, 16U}) {
    SCOPED_TRACE(size);
    test::write_text(folder / "data.bin", std::string(size, '\0'));
    const auto [what, offset] = fault_of([&] { indexed_dataset{folder / "data"}; });
    EXPECT_EQ(offset, std::min<std::size_t>(size, 8));
    EXPECT_THAT(what, HasSubstr("data.bin: " + std::to_string(size) + " bytes, expected 8, " +
                                "where the last sequence of data.idx ends"));
  }
  test::write_dataset<std::uint16_t>(folder / "empty", {});
  test::write_text(folder / "empty.bin", "x");
  EXPECT_THROW(indexed_dataset{folder / "empty"}, format_error);
}

TEST(IndexedDatasetFiles, NamesTheOneThatIsMissing) {
  const test::temp_folder folder;
  for (const char* suffix : {".bin", ".idx"}) {
    test::write_dataset<std::uint16_t>(folder / "data", {{{1}}});
    std::filesystem::remove(test::suffixed(folder / "data", suffix));
    try {
      const indexed_dataset data(folder / "data");
      ADD_FAILURE() << "opened without its " << suffix;
    } catch (const io_error& e) {
      EXPECT_EQ(e.path(), test::suffixed(folder / "data", suffix));
      EXPECT_EQ(e.code(), ENOENT);
    }
  }
}

TEST(IndexedDatasetFiles, RefusesAFolderForAFile) {
  const test::temp_folder folder;
  for (const char* suffix : {".bin", ".idx"}) {
    test::write_dataset<std::uint16_t>(folder / "data", {{{1}}});
    const auto path = test::suffixed(folder / "data", suffix);
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    try {
      const indexed_dataset data(folder / "data");
      ADD_FAILURE() << "opened a folder for its " << suffix;
    } catch (const io_error& e) {
      EXPECT_EQ(e.path(), path);
      EXPECT_EQ(e.code(), EISDIR);
    }
    std::filesystem::remove(path);
  }
}

}  // namespace
}  // namespace millrace::dataset
