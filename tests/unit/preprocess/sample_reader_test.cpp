// SPDX-License-Identifier: Apache-2.0
#include "watch/sample_reader.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <random>
#include <string>
#include <vector>

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
}  // namespace millrace::preprocess
