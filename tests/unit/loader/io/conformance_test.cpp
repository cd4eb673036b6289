// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cerrno>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/loader/io/reader_kinds.hpp"

// Every reader must pass these tests, no matter how it reads.
namespace millrace::loader {
namespace {

using testing::HasSubstr;

constexpr std::byte poison{0xAB};
constexpr std::size_t margin = 64;

/// Creates files of random bytes, and readers for them.
class RangeReader : public testing::TestWithParam<test::reader_kind> {
 protected:
  /// Appends a file of `size` bytes to the list. About one byte in eight is 0.
  void add_file(std::integral auto size) {
    const auto bytes = static_cast<std::size_t>(size);
    std::vector<std::byte> contents(bytes);
    for (std::size_t at = 0; at < bytes; at += sizeof(std::uint64_t)) {
      std::uint64_t value = random_();
      value &= ~(std::uint64_t{0xFF} << (8 * (value >> 61)));
      std::memcpy(&contents[at], &value, std::min(sizeof value, bytes - at));
    }
    const auto path = folder_ / ("file_" + std::to_string(files_.size()) + ".bin");
    test::write_bytes(path, contents);
    files_.push_back({path, bytes});
    contents_.push_back(std::move(contents));
  }

  std::unique_ptr<range_reader> reader(reader_options options = {}) const {
    if (!options.files) options.files = table_;
    return GetParam().make(files_, std::move(options));
  }

  file_range random_range() {
    const auto file = static_cast<std::int64_t>(random_() % files_.size());
    const std::uint64_t size = files_[static_cast<std::size_t>(file)].bytes;
    const std::uint64_t offset = random_() % (size + 1);
    const std::uint64_t most = size - offset;
    std::uint64_t bytes = random_() % 16 == 0 ? random_() % (most + 1) : random_() % 9000;
    if (random_() % 8 == 0) bytes = most;  // the range reaches the end of the file
    if (random_() % 16 == 0) bytes = 0;
    return {file, offset, std::min(bytes, most)};
  }

  /// Gathers into poisoned memory, with margins between the ranges. Compares every byte of this
  /// memory.
  void expect_bytes(range_reader& reader, const std::vector<file_range>& ranges) const {
    std::size_t total = margin;
    for (const file_range& r : ranges) total += r.bytes + margin;
    std::vector<std::byte> found(total, poison);
    std::vector<std::byte> expected(total, poison);
    std::vector<read_request> requests;
    std::size_t at = margin;
    for (const file_range& r : ranges) {
      requests.push_back({r, found.data() + at});
      const auto& file = contents_[static_cast<std::size_t>(r.file)];
      std::copy_n(file.begin() + static_cast<std::ptrdiff_t>(r.offset), r.bytes,
                  expected.begin() + static_cast<std::ptrdiff_t>(at));
      at += r.bytes + margin;
    }
    reader.gather(requests);
    if (std::memcmp(found.data(), expected.data(), total) == 0) return;
    const auto wrong = std::ranges::mismatch(found, expected).in1;
    ADD_FAILURE() << "first at byte " << wrong - found.begin();
  }

  /// Returns the io_error that a gather of a single range throws.
  static io_error error_of(range_reader& reader, const file_range& range) {
    std::vector<std::byte> memory(range.bytes);
    const read_request request{range, memory.data()};
    try {
      reader.gather({&request, 1});
    } catch (const io_error& e) {
      return e;
    }
    ADD_FAILURE() << "no error";
    return {"", "", 0};
  }

  test::temp_folder folder_;
  std::mt19937_64 random_{7};
  std::vector<data_file> files_;
  std::vector<std::vector<std::byte>> contents_;
  std::shared_ptr<open_files> table_ = std::make_shared<open_files>();
};

INSTANTIATE_TEST_SUITE_P(All, RangeReader, testing::ValuesIn(test::reader_kinds()),
                         [](const auto& kind) { return kind.param.name; });

TEST_P(RangeReader, GivesTheBytesOfRandomRanges) {
  random_.seed(test::seed(1));
  for (const int bytes : {1, 4095, 4096, 4097, 70'000, 3'000'000}) add_file(bytes);
  const auto r = reader();
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    std::vector<file_range> ranges(random_() % 40);
    for (file_range& range : ranges) range = random_range();
    if (ranges.size() > 3) ranges[1] = ranges[2];  // requests the same bytes twice
    if (round % 2 == 0) r->prefetch(ranges);
    expect_bytes(*r, ranges);
    if (HasFailure()) return;
  }
}

TEST_P(RangeReader, GivesWholeFilesAndTheirEnds) {
  for (const int bytes : {0, 1, 511, 512, 513, 4096, 2'097'152, 6'000'001}) add_file(bytes);
  const auto r = reader();
  for (std::size_t i = 0; i < files_.size(); ++i) {
    const auto file = static_cast<std::int64_t>(i);
    const std::uint64_t size = files_[i].bytes;
    expect_bytes(*r, {{file, 0, size}});
    expect_bytes(*r, {{file, size, 0}, {file, 0, 0}});
    if (size > 0) expect_bytes(*r, {{file, size - 1, 1}, {file, 0, 1}});
  }
  std::vector<file_range> all;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    all.push_back({static_cast<std::int64_t>(i), 0, files_[i].bytes});
  }
  expect_bytes(*r, all);
}

TEST_P(RangeReader, NeighboursAreNotMixedUp) {
  add_file(200'000);
  std::vector<file_range> ranges;
  for (std::uint64_t at = 0; at + 100 < 200'000; at += 100 + random_() % 5000) {
    ranges.push_back({0, at, 100});       // with a gap to the next range
    ranges.push_back({0, at + 100, 37});  // without a gap
    ranges.push_back({0, at + 50, 100});  // overlaps the previous range
  }
  std::erase_if(ranges, [](const file_range& r) { return r.offset + r.bytes > 200'000; });
  std::ranges::shuffle(ranges, random_);
  expect_bytes(*reader(), ranges);
}

TEST_P(RangeReader, NothingIsAskedOfNothing) {
  const auto none = reader();
  none->prefetch({});
  none->gather({});
  add_file(10);
  const auto one = reader();
  one->prefetch({});
  one->gather({});
}

TEST_P(RangeReader, PrefetchChangesNothingAndNeverFails) {
  add_file(100'000);
  files_.push_back({folder_ / "absent.bin", 1000});
  const auto r = reader();
  const std::vector<file_range> ranges{{0, 0, 100'000}, {1, 0, 1000}, {0, 5, 0}, {0, 99'999, 1}};
  for (int i = 0; i < 3; ++i) r->prefetch(ranges);
  expect_bytes(*r, {{0, 0, 100'000}});
}

TEST_P(RangeReader, SaysWhatItIsAndWhy) {
  add_file(100'000);
  const auto r = reader({.files = nullptr, .asked = "auto", .why = "the test says so"});
  const std::vector<file_range> ranges{{0, 10, 1000}, {0, 50'000, 8192}};
  r->prefetch(ranges);
  expect_bytes(*r, ranges);
  const reader_report report = r->report();
  EXPECT_EQ(report.asked, "auto");
  EXPECT_EQ(report.why, "the test says so");
  EXPECT_EQ(report.gathers, 1);
  EXPECT_EQ(report.requests, 2);
  EXPECT_EQ(report.bytes, 9192u);
  EXPECT_GE(report.bytes_read, 9192u);
  EXPECT_EQ(report.retries, 0);
  EXPECT_GE(report.most_open_files, 1);

  const reader_report plain = reader()->report();
  for (const reader_report& each : {report, plain}) {
    EXPECT_NE(each.asked, "");
    EXPECT_NE(each.granted, "");
    EXPECT_NE(each.granted, "auto");
    EXPECT_NE(each.why, "");
    for (const grant& g : each.grants) {
      EXPECT_NE(g.asked, "");
      EXPECT_NE(g.granted, "") << g.asked;
      EXPECT_NE(g.why, "") << g.asked;
    }
  }
}

TEST_P(RangeReader, AMissingFileIsNamed) {
  add_file(1000);
  files_.push_back({folder_ / "absent.bin", 1000});
  const auto r = reader();
  const io_error e = error_of(*r, {1, 0, 10});
  EXPECT_EQ(e.code(), ENOENT);
  EXPECT_EQ(e.path(), folder_ / "absent.bin");
  expect_bytes(*r, {{0, 0, 1000}});  // the reader can still be used
}

// A file that is too short must be an error. Copies over a network often cause this fault. Other
// software reports success and returns the old contents of the memory.
TEST_P(RangeReader, AFileThatIsTooShortIsAnError) {
  add_file(4 << 20);
  files_[0].bytes = 8 << 20;
  const auto r = reader();
  const io_error e = error_of(*r, {0, 0, 8 << 20});
  EXPECT_EQ(e.code(), ENODATA);
  EXPECT_EQ(e.offset(), std::uint64_t{4} << 20);
  EXPECT_THAT(e.what(), HasSubstr("should have 8388608 bytes"));
}

TEST_P(RangeReader, AFileThatShrinksIsAnErrorAndTheRestIsRead) {
  add_file(40'000);
  add_file(1000);
  for (const std::uint64_t left : {30'000u, 20'480u, 4095u, 0u}) {
    SCOPED_TRACE(left);
    test::write_bytes(files_[0].path, contents_[0]);
    const auto r = reader({.files = std::make_shared<open_files>()});
    expect_bytes(*r, {{0, 0, 40'000}});
    std::filesystem::resize_file(files_[0].path, left);
    for (const file_range& lost :
         {file_range{0, 0, 40'000}, file_range{0, 39'999, 1}, file_range{0, left, 1}}) {
      const io_error e = error_of(*r, lost);
      EXPECT_EQ(e.code(), ENODATA) << e.what();
      EXPECT_EQ(e.path(), files_[0].path);
      ASSERT_TRUE(e.offset().has_value());
      EXPECT_GE(*e.offset(), left);
    }
    expect_bytes(*r, {{0, 0, left}, {1, 0, 1000}});
  }
}

// If a file is truncated inside a page, a reader must detect the loss no matter where the read
// begins. A map shows the rest of that page as zeros, and no signal arrives.
TEST_P(RangeReader, AnEndLostInsideAPageIsSeenWhereverItBegins) {
  add_file(5000);
  for (const std::uint64_t left : {4097u, 4500u, 4999u}) {
    test::write_bytes(files_[0].path, contents_[0]);
    const auto r = reader({.files = std::make_shared<open_files>()});
    expect_bytes(*r, {{0, 4096, 904}});
    std::filesystem::resize_file(files_[0].path, left);
    for (std::uint64_t end = left + 1; end <= 5000; end += 50) {
      const file_range range{0, 4096, end - 4096};
      std::vector<std::byte> found(range.bytes, poison);
      const read_request request{range, found.data()};
      try {
        r->gather({&request, 1});
      } catch (const io_error& e) {
        EXPECT_EQ(e.code(), ENODATA);
        continue;
      }
      // The reader noticed no loss. This is right only if the lost bytes were zeros.
      EXPECT_TRUE(std::equal(found.begin(), found.end(), contents_[0].begin() + 4096))
          << left << " bytes left, read up to " << end;
    }
  }
}

TEST_P(RangeReader, AReplacedFileStaysTheOldOneWhileItIsOpen) {
  add_file(50'000);
  const auto r = reader();
  expect_bytes(*r, {{0, 0, 50'000}});
  test::write_bytes(folder_ / "new", std::vector<std::byte>(50'000, std::byte{1}));
  std::filesystem::rename(folder_ / "new", files_[0].path);
  expect_bytes(*r, {{0, 0, 50'000}});
  // A new reader must use the new file.
  const auto other = reader();
  contents_[0].assign(50'000, std::byte{1});
  expect_bytes(*other, {{0, 100, 1000}});
}

TEST_P(RangeReader, AReplacedFileIsNotOpenedForTheOldOne) {
  add_file(50'000);
  // These are more files than any reader keeps open on its own.
  for (int i = 0; i < 70; ++i) add_file(5000);
  const auto r = reader({.files = std::make_shared<open_files>(open_file_limits{.files = 4})});
  expect_bytes(*r, {{0, 0, 50'000}});
  test::write_bytes(folder_ / "new", std::vector<std::byte>(50'000, std::byte{1}));
  std::filesystem::rename(folder_ / "new", files_[0].path);
  for (int round = 0; round < 60; ++round) {  // until the other files have evicted file 0
    for (std::int64_t i = 1; i <= 70; ++i) expect_bytes(*r, {{i, 0, 5000}});
  }
  const io_error e = error_of(*r, {0, 0, 1000});
  EXPECT_EQ(e.code(), ESTALE);
  EXPECT_THAT(e.what(), HasSubstr("is no longer the file"));
}

TEST_P(RangeReader, AnotherFileThanTheIndexsIsRefused) {
  add_file(1000);
  files_[0].identity = io::identity_of(files_[0].path);
  expect_bytes(*reader(), {{0, 0, 1000}});
  ++files_[0].identity->inode;
  EXPECT_EQ(error_of(*reader(), {0, 0, 1000}).code(), ESTALE);
}

TEST_P(RangeReader, ManyFilesNeedFewDescriptorsAndMaps) {
  for (int i = 0; i < 300; ++i) add_file(100 + random_() % 8000);
  const auto table = std::make_shared<open_files>(open_file_limits{.files = 16, .maps = 8});
  const auto r = reader({.files = table});
  for (int round = 0; round < 3; ++round) {
    std::vector<file_range> ranges(500);
    for (file_range& range : ranges) range = random_range();
    r->prefetch(ranges);
    expect_bytes(*r, ranges);
  }
  // Besides the files in the table, each thread may have one file open while it reads.
  EXPECT_LE(table->usage().most_files, 16 + 9);
  EXPECT_LE(table->usage().most_maps, 8);
}

// A gather must not write to the memory of an earlier gather.
TEST_P(RangeReader, TheMemoryOfAnEarlierGatherIsLeftAlone) {
  for (int i = 0; i < 9; ++i) add_file(i < 8 ? 200'000 : 1'600'000);
  const auto r = reader({.files = std::make_shared<open_files>(open_file_limits{.maps = 1})});
  std::vector<std::vector<std::byte>> first(8, std::vector<std::byte>(200'000));
  std::vector<read_request> requests;
  for (std::int64_t i = 0; i < 8; ++i) {
    requests.push_back({{i, 0, 200'000}, first[static_cast<std::size_t>(i)].data()});
  }
  r->gather(requests);
  for (auto& memory : first) std::ranges::fill(memory, poison);
  std::vector<file_range> ranges;
  for (std::int64_t i = 0; i < 8; ++i) ranges.push_back({i, 0, 10});
  ranges.push_back({8, 0, 1'600'000});
  expect_bytes(*r, ranges);
  for (const auto& memory : first) {
    EXPECT_TRUE(std::ranges::all_of(memory, [](std::byte b) { return b == poison; }));
  }
}

TEST_P(RangeReader, ReadersOfSeveralThreadsShareATable) {
  for (int i = 0; i < 40; ++i) add_file(20'000);
  const auto table = std::make_shared<open_files>(open_file_limits{.files = 12, .maps = 4});
  std::vector<std::vector<file_range>> ranges(std::size_t{4} * 20);
  for (auto& each : ranges) {
    each.resize(10);
    for (file_range& range : each) range = random_range();
  }
  std::vector<std::jthread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      const auto r = reader({.files = table});
      for (std::size_t i = 0; i < 20; ++i) {
        r->prefetch(ranges[t * 20 + i]);
        expect_bytes(*r, ranges[t * 20 + i]);
      }
    });
  }
}

}  // namespace
}  // namespace millrace::loader
