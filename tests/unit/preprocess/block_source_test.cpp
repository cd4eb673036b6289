// SPDX-License-Identifier: Apache-2.0
#include "input/block_source.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>
#include <millrace/io/file_ops.hpp>

#include "input/block_readers.hpp"
#include "support/compressed.hpp"
#include "support/naive_lines.hpp"
#include "support/paths.hpp"
#include "support/read_blocks.hpp"
#include "support/seed.hpp"

namespace millrace::preprocess {
namespace {

using test::piece;
using BlockSource = test::read_blocks;

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

struct input_form {
  const char* name;
  std::string (*compress)(const std::string&);
};
std::string as_it_is(const std::string& text) {
  return text;
}
std::string compressed_once(const std::string& text) {
  return test::gzip(text);
}

// A short text has the same lines wherever it is cut into blocks. A wrong cut, inside a line or
// between '\r' and '\n', would change the number of lines. Plain files are read in spans by several
// readers; other files are read from the start.
TEST_F(BlockSource, NoCutChangesTheLinesOfAnyShortText) {
  add("");
  for (const input_form how :
       {input_form{"plain", as_it_is}, input_form{"gzip", compressed_once}}) {
    test::for_all_texts("\r\n a", how.compress == as_it_is ? 6 : 4, [&](const std::string& text) {
      test::write_text(paths_[0], how.compress(text));
      const std::vector<input_file> inputs = plan_inputs(paths_);
      for (const std::size_t block_bytes : {1U, 2U, 3U, 4U, 5U}) {
        std::vector<std::string> lines;
        std::string all;
        for (const piece& p : read(inputs, {.end = {1, 0}}, block_bytes)) {
          ASSERT_EQ(p.offset, all.size()) << testing::PrintToString(text) << how.name;
          all += p.text;
          for (auto& line : test::naive_lines(p.text)) lines.push_back(std::move(line));
        }
        ASSERT_EQ(all, text) << how.name << " in blocks of " << block_bytes;
        ASSERT_EQ(lines, test::naive_lines(text))
            << testing::PrintToString(text) << how.name << " in blocks of " << block_bytes;
      }
    });
  }
}

// Any block size gives the same bytes at the same offsets. Error messages direct users to these
// offsets.
TEST_F(BlockSource, AnyBlockSizeGivesTheSameBytesAtTheSameOffsets) {
  std::mt19937_64 random(test::seed(11));
  std::vector<std::string> contents;
  for (int file = 0; file < 3; ++file) {
    std::string text;
    while (text.size() < 3000) {
      text += std::string(random() % 30, 'a');
      text += std::vector<std::string>{"\n", "\r\n", "\r", "\n\n", "\r\r\n"}[random() % 5];
    }
    contents.push_back(text);
  }
  add(contents[0]);
  add(test::gzip(contents[1]));
  add(test::zstd(contents[2]));
  for (const std::size_t block_bytes :
       {0U, 1U, 3U, 7U, 16U, 31U, 64U, 100U, 999U, 4096U, 1U << 20U}) {
    SCOPED_TRACE(testing::Message() << "blocks of " << block_bytes);
    const auto pieces = read(block_bytes);
    for (std::size_t input = 0; input < contents.size(); ++input) {
      EXPECT_EQ(joined(pieces, input), contents[input]);
    }
    std::size_t input = 0;
    std::size_t offset = 0;
    for (const piece& p : pieces) {
      if (p.input != input) {
        EXPECT_EQ(p.input, input + 1) << "files come in order";
        input = p.input;
        offset = 0;
      }
      EXPECT_EQ(p.offset, offset);
      offset += p.text.size();
    }
  }
}

TEST_F(BlockSource, LeavesOutAByteOrderMarkAtTheStartOfEachFile) {
  add(std::string(byte_order_mark) + "one\ntwo\n");
  add("three\n");
  add(test::gzip(std::string(byte_order_mark) + "four\n"));
  for (const std::size_t block_bytes : {3U, 4U, 5U, 4096U}) {
    const auto pieces = read(block_bytes);
    EXPECT_EQ(joined(pieces, 0), "one\ntwo\n");
    EXPECT_EQ(pieces.front().offset, 3U) << "offsets count the bytes of the file";
    EXPECT_EQ(joined(pieces, 1), "three\n");
    EXPECT_EQ(joined(pieces, 2), "four\n");
    EXPECT_EQ(pieces.back().offset, 3U);
  }
}

// A byte order mark counts only as the first character of a file. Elsewhere it is U+FEFF and must
// be kept.
TEST_F(BlockSource, KeepsAByteOrderMarkAnywhereElse) {
  const std::string mark(byte_order_mark);
  add(mark + mark + "a\n" + mark + "b\n");
  add("\n" + mark + "c\n");
  for (const std::size_t block_bytes : {3U, 4U, 6U, 4096U}) {
    const auto pieces = read(block_bytes);
    EXPECT_EQ(joined(pieces, 0), mark + "a\n" + mark + "b\n");
    EXPECT_EQ(joined(pieces, 1), "\n" + mark + "c\n");
  }
}

TEST_F(BlockSource, GivesNoBlockOfAFileThatIsOnlyAByteOrderMark) {
  add(std::string(byte_order_mark));
  EXPECT_TRUE(read(3).empty());
}

TEST_F(BlockSource, KeepsHalfAByteOrderMark) {
  add("\xEF\xBB");
  EXPECT_EQ(joined(read(64)), "\xEF\xBB");
}

// A file that has only '\r' as line ends is cut into blocks too. Old Macintosh files have only
// '\r'. If blocks were cut only at '\n', such a file would be one giant block.
TEST_F(BlockSource, CutsAFileThatHasOnlyReturns) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + "\r";
  add(text);
  const auto pieces = read(64);
  EXPECT_EQ(joined(pieces), text);
  EXPECT_GT(pieces.size(), 40U);
  for (const piece& p : pieces) EXPECT_LE(p.text.size(), 64U + 4);
}

// Blocks limit the memory that is used. Only a line that is longer than the block size can make a
// block longer.
TEST_F(BlockSource, OnlyAGiantLineMakesAGiantBlock) {
  const std::string giant(100'000, 'g');
  add("a\nb\n" + giant + "\n" + "c\nd\n" + giant + "\r\n" + "e\n");
  const auto pieces = read(64);
  EXPECT_EQ(joined(pieces), test::read_text(paths_[0]));
  for (const piece& p : pieces) {
    const bool has_giant = p.text.find('g') != std::string::npos;
    EXPECT_LE(p.text.size(), has_giant ? giant.size() + 200 : 64U + 4);
  }
}

// A last line without a line end must not be joined with the first line of the next file.
TEST_F(BlockSource, EndsABlockAtTheEndOfAFile) {
  add("");
  add("one");
  add("");
  add("two\r");
  add("\nthree");
  add("");
  for (const std::size_t block_bytes : {3U, 4096U}) {
    const auto pieces = read(block_bytes);
    EXPECT_EQ(joined(pieces, 1), "one");
    EXPECT_EQ(joined(pieces, 3), "two\r");
    EXPECT_EQ(joined(pieces, 4), "\nthree");
  }
}

TEST_F(BlockSource, GivesNothingForNoInput) {
  EXPECT_TRUE(read(64).empty());
}

TEST_F(BlockSource, StaysAtTheEnd) {
  add("a\n");
  const std::vector<input_file> inputs = plan_inputs(paths_);
  block_source source(inputs, {.end = {1, 0}}, {});
  byte_block block;
  EXPECT_TRUE(source.next(block));
  EXPECT_FALSE(source.next(block));
  EXPECT_FALSE(source.next(block));
}

// With compressed files, progress must still reach 100 %, so the bytes on disk are counted.
TEST_F(BlockSource, CountsBytesOnDiskUpToTheLastOne) {
  std::string text;
  for (int i = 0; i < 5000; ++i) text += std::to_string(i) + "\n";
  add(text);
  add(test::gzip(text));
  add("");
  add(test::zstd(text));
  std::uint64_t on_disk = 0;
  for (const input_file& file : plan_inputs(paths_)) on_disk += file.size_bytes;
  const auto pieces = read(512);
  std::uint64_t before = 0;
  for (const piece& p : pieces) {
    EXPECT_GE(p.read_bytes, before);
    before = p.read_bytes;
  }
  EXPECT_EQ(before, on_disk);
}

// The blocks before the damage are returned, and their text is correct. Then the error is thrown.
TEST_F(BlockSource, GivesTheBlocksBeforeADamagedPlace) {
  std::mt19937_64 random(5);
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(random()) + "\n";
  const std::string compressed = test::gzip(text);
  add(compressed.substr(0, compressed.size() / 2));
  const std::vector<input_file> inputs = plan_inputs(paths_);
  block_source source(inputs, {.end = {1, 0}}, {.block_bytes = 4096});
  std::string before;
  byte_block block;
  EXPECT_THROW(
      {
        while (source.next(block)) before += block.text();
      },
      format_error);
  EXPECT_GT(before.size(), text.size() / 3);
  EXPECT_TRUE(text.starts_with(before));
}

TEST_F(BlockSource, NamesAnInputThatWentAwayAfterPlanning) {
  add("a\n");
  const std::vector<input_file> inputs = plan_inputs(paths_);
  std::filesystem::remove(paths_[0]);
  try {
    (void)read(inputs, {.end = {1, 0}}, 64);
    ADD_FAILURE() << "read a file that is not there";
  } catch (const io_error& e) {
    EXPECT_EQ(e.code(), ENOENT);
    EXPECT_EQ(e.path(), paths_[0]);
  }
}

// A file that changes its size while it is read is an error. Reading past the planned end would
// mistake a partial line for a whole one.
TEST_F(BlockSource, NoticesAFileThatChangesItsSize) {
  add("one\ntwo\n");
  const std::vector<input_file> inputs = plan_inputs(paths_);
  for (const std::string contents : {"one\ntw", "one\ntwo\nthr"}) {
    test::write_text(paths_[0], contents);
    EXPECT_THROW(read(inputs, {.end = {1, 0}}, 64), format_error) << contents;
  }
}

TEST_F(BlockSource, NoticesAFileThatChangesItsSizeWithinAGiantLine) {
  const std::string text = "a\n" + std::string(50'000, 'g') + "\nb\n";
  add(text);
  const std::vector<input_file> inputs = plan_inputs(paths_);
  const read_limits limits{.block_bytes = 64, .giant_bytes = 1000, .spool_folder = folder_.path()};
  const auto fault = [&](const std::string& contents) -> std::string {
    test::write_text(paths_[0], contents);
    try {
      block_source source(inputs, {.end = {1, 0}}, limits);
      for (byte_block block; source.next(block) && !block.giant;)
        test::read_whole_span(block, limits);
    } catch (const format_error& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(fault(text), "");
  EXPECT_EQ(fault(text.substr(0, 30'000)),
            paths_[0] + ": the file became shorter while it was being read (at byte 30000)");
  EXPECT_EQ(fault(text.substr(0, 30'000) + std::string(30'000, 'g')),
            paths_[0] + ": the file became longer while it was being read (at byte 50005)");
}

// A giant line is not stored. Its place is reported instead, in order between its neighbors.
TEST_F(BlockSource, TellsWhereAGiantLineLies) {
  const std::string giant(50'000, 'g');
  for (const std::string end : {"\n", "\r\n", "\r", ""}) {
    const std::string text = "a\nb\n" + giant + end + (end.empty() ? "" : "c\n");
    for (const bool compressed : {false, true}) {
      paths_.clear();
      add(compressed ? test::gzip(text) : text);
      const std::vector<input_file> inputs = plan_inputs(paths_);
      const read_limits limits{
          .block_bytes = 64, .giant_bytes = 1000, .spool_folder = folder_.path()};
      block_source source(inputs, {.end = {1, 0}}, limits);
      std::string all;
      int giants = 0;
      for (byte_block block; source.next(block);) {
        test::read_whole_span(block, limits);
        all += block.text();
        if (!block.giant) continue;
        ++giants;
        const giant_line& line = *block.giant;
        EXPECT_EQ(line.offset_bytes, 4U);
        std::string bytes(line.end - line.begin, '?');
        EXPECT_EQ(
            io::pread_some(*line.file, std::as_writable_bytes(std::span(bytes)), line.begin, ""),
            bytes.size());
        EXPECT_EQ(bytes, giant);
        EXPECT_EQ(line.size_bytes, (giant + end).size());
        const std::string whole = giant + end;
        EXPECT_EQ(line.crc32c, formats::crc32c(std::as_bytes(std::span(whole))));
        EXPECT_EQ(block.end, 4 + line.size_bytes);
      }
      EXPECT_EQ(giants, 1);
      EXPECT_EQ(all, end.empty() ? "a\nb\n" : "a\nb\nc\n");
    }
  }
}

}  // namespace
}  // namespace millrace::preprocess
