// SPDX-License-Identifier: Apache-2.0
#include "report/sample_reader.hpp"

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/error.hpp>

#include "support/compressed.hpp"
#include "support/paths.hpp"

namespace millrace::preprocess {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class SampleReader : public testing::Test {
 protected:
  input_file write(const std::string& bytes, compression compressed_with = compression::none) {
    const auto path = folder_ / ("in" + std::to_string(files_++));
    std::ofstream(path, std::ios::binary) << bytes;
    return {.path = path,
            .compressed_with = compressed_with,
            .size_bytes = bytes.size(),
            .regular = true};
  }
  static std::string lines(const input_file& file, std::uint64_t begin, std::uint64_t end) {
    std::string out;
    sample_reader reader;
    EXPECT_TRUE(reader.read(file, {0, begin, end}, [&](std::string_view text) { out += text; }));
    return out;
  }
  test::temp_folder folder_;
  int files_ = 0;
};

TEST_F(SampleReader, GivesTheLinesThatStartInARange) {
  const input_file file = write("aaa\nbbb\nccc\n");
  EXPECT_EQ(lines(file, 0, 12), "aaa\nbbb\nccc\n");
  EXPECT_EQ(lines(file, 0, 1), "aaa\n");
  EXPECT_EQ(lines(file, 1, 4), "");
  EXPECT_EQ(lines(file, 1, 5), "bbb\n");
  EXPECT_EQ(lines(file, 4, 8), "bbb\n");
  EXPECT_EQ(lines(file, 5, 12), "ccc\n");
  EXPECT_EQ(lines(file, 9, 12), "");
}

// However a file is cut into ranges, each line is returned once.
TEST_F(SampleReader, MissesNoLineAndGivesNoneTwice) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    std::string text;
    const std::size_t size = 1 + random() % 60;
    while (text.size() < size) text += "\r\nab"[random() % 4];
    const input_file file = write(text);
    std::string joined;
    for (std::uint64_t begin = 0; begin < size;) {
      const std::uint64_t end = std::min<std::uint64_t>(size, begin + 1 + random() % 20);
      joined += lines(file, begin, end);
      begin = end;
    }
    ASSERT_EQ(joined, text);
  }
}

TEST_F(SampleReader, FollowsALongLineToItsEnd) {
  const std::string line = std::string(3'000'000, 'x') + "\n";
  const input_file file = write("a\n" + line + "b\n");
  EXPECT_EQ(lines(file, 1, 3), line);
  EXPECT_EQ(lines(file, 3, 2'000'000), "");
}

TEST_F(SampleReader, LeavesOutAByteOrderMark) {
  EXPECT_EQ(lines(write("\xEF\xBB\xBF"
                        "a\n"),
                  0, 5),
            "a\n");
}

TEST_F(SampleReader, GivesAWholeFileInPiecesOfWholeLines) {
  std::string text = "\xEF\xBB\xBF";
  for (int i = 0; i < 5000; ++i) {
    text += "line " + std::to_string(i) + (i % 3 == 0 ? "\r\n" : i % 3 == 1 ? "\n" : "\r");
  }
  text += "the last, without an end";
  struct compressed_text {
    compression compressed_with;
    std::string bytes;
  };
  for (const compressed_text& each : {compressed_text{compression::none, text},
                                      compressed_text{compression::zstd, test::zstd(text)},
                                      compressed_text{compression::gzip, test::gzip(text)}}) {
    std::string joined;
    int pieces = 0;
    const compressed_sample sample = read_start(
        write(each.bytes, each.compressed_with), 4096, ~0ULL, [&](std::string_view lines) {
          joined += lines;
          ++pieces;
          EXPECT_TRUE(lines.ends_with('\n') || lines.ends_with('\r') || lines.ends_with("end"));
        });
    EXPECT_EQ(joined, text.substr(3));
    EXPECT_GT(pieces, 10);
    EXPECT_TRUE(sample.whole);
    EXPECT_EQ(sample.text_bytes, text.size());
    EXPECT_NEAR(sample.compression_ratio,
                static_cast<double>(text.size()) / static_cast<double>(each.bytes.size()), 1e-9);
  }
}

// The compression ratio is measured from the part that is read. Compressed bytes that are only
// buffered must not be counted as decompressed.
TEST_F(SampleReader, MeasuresTheCompressionRatioFromThePartThatItReads) {
  std::mt19937 random(3);
  std::string text;
  while (text.size() < 40'000'000) {
    text += "{\"text\": \"" + std::to_string(random()) + " and " + std::to_string(random() % 100) +
            " more words of the same kind\"}\n";
  }
  const std::string compressed = test::zstd(text);
  const double truth = static_cast<double>(text.size()) / static_cast<double>(compressed.size());
  const compressed_sample sample =
      read_start(write(compressed, compression::zstd), 1 << 17, 1 << 20, [](std::string_view) {});
  EXPECT_FALSE(sample.whole);
  EXPECT_LT(sample.text_bytes, 10'000'000);
  EXPECT_NEAR(sample.compression_ratio / truth, 1, 0.1);
}

TEST_F(SampleReader, ThrowsWhereAFileIsMissing) {
  sample_reader reader;
  const input_file gone{.path = folder_ / "gone"};
  EXPECT_THROW(reader.read(gone, {0, 0, 1}, [](std::string_view) {}), io_error);
}

}  // namespace

namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using sizes = std::vector<std::uint64_t>;

std::uint64_t size_of(const sample_place& place) {
  std::uint64_t sum = 0;
  for (const sample_range& range : place) sum += range.end - range.begin;
  return sum;
}

TEST(SamplePlaces, AreNoneOfNothing) {
  EXPECT_THAT(sample_places({}, 10, 100), IsEmpty());
  EXPECT_THAT(sample_places(sizes{0, 0}, 10, 100), IsEmpty());
}

TEST(SamplePlaces, LieEvenlyOverAFile) {
  auto places = sample_places(sizes{1000}, 4, 100);
  std::ranges::sort(places, {}, [](const sample_place& place) { return place.front().begin; });
  EXPECT_THAT(places, ElementsAre(sample_place{{0, 75, 175}}, sample_place{{0, 325, 425}},
                                  sample_place{{0, 575, 675}}, sample_place{{0, 825, 925}}));
}

TEST(SamplePlaces, RunOnIntoTheNextFiles) {
  const auto places = sample_places(sizes{0, 45, 0, 3, 52}, 1, 40);
  ASSERT_THAT(places, SizeIs(1));
  EXPECT_THAT(places[0],
              ElementsAre(sample_range{1, 30, 45}, sample_range{3, 0, 3}, sample_range{4, 0, 22}));
}

// The order of the places is scattered, so that the first ones are spread over the files too. If
// time runs out, the first tenth must be enough for an estimate.
TEST(SamplePlaces, JumpAboutSoThatTheFirstAreSpreadToo) {
  const std::uint64_t total = 1'000'000'000;
  const auto places = sample_places(sizes{total}, 192, 1000);
  ASSERT_THAT(places, SizeIs(192));
  std::set<std::uint64_t> tenths;
  for (int i = 0; i < 19; ++i) {
    tenths.insert(places[static_cast<std::size_t>(i)].front().begin / (total / 10));
  }
  EXPECT_THAT(tenths, SizeIs(10));
}

// If the places would overlap, fewer places are returned. All places are inside the files, and no
// two overlap.
TEST(SamplePlaces, NeverMeetAndStayInside) {
  for (const sizes& files :
       {sizes{1}, sizes{99, 1}, sizes{1000}, sizes(300, 7), sizes{5, 12345, 1}}) {
    const std::uint64_t total = std::accumulate(files.begin(), files.end(), std::uint64_t{0});
    for (const std::uint64_t bytes : {1U, 10U, 100U, 100000U}) {
      std::vector<std::set<std::uint64_t>> seen(files.size());
      const auto places = sample_places(files, 192, bytes);
      EXPECT_THAT(places, SizeIs(testing::Le(192)));
      EXPECT_FALSE(places.empty());
      for (const sample_place& place : places) {
        EXPECT_LE(size_of(place), std::min(bytes, total));
        for (const sample_range& range : place) {
          ASSERT_LT(range.file, files.size());
          ASSERT_LT(range.begin, range.end);
          ASSERT_LE(range.end, files[range.file]);
          for (std::uint64_t at = range.begin; at < range.end; ++at) {
            ASSERT_TRUE(total < bytes * places.size() || seen[range.file].insert(at).second) << at;
          }
        }
      }
    }
  }
}

TEST(SamplePlaces, TakeSizesNearTheLargest) {
  const sizes huge = {std::uint64_t{1} << 62, std::uint64_t{1} << 61};
  for (const sample_place& place : sample_places(huge, 192, 1 << 17)) {
    ASSERT_THAT(place, SizeIs(1));
    EXPECT_LE(place[0].end, huge[place[0].file]);
    EXPECT_EQ(place[0].end - place[0].begin, 1U << 17);
  }
}

TEST(SampleFiles, HitLargeFilesMoreOften) {
  const auto files = sample_files(sizes{100, 0, 300}, 64);
  EXPECT_THAT(files, SizeIs(64));
  EXPECT_EQ(std::ranges::count(files, 0U), 16);
  EXPECT_EQ(std::ranges::count(files, 2U), 48);
  EXPECT_THAT(sample_files(sizes{0}, 64), IsEmpty());
}

}  // namespace

}  // namespace millrace::preprocess
