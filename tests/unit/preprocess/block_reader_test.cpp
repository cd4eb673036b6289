// SPDX-License-Identifier: Apache-2.0
#include "block_reader.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>

#include "support/naive_lines.hpp"
#include "support/packed.hpp"
#include "support/paths.hpp"
#include "support/seed.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

struct piece {
  std::size_t input = 0;
  std::uint64_t offset = 0;
  std::string text;
  std::uint64_t read_bytes = 0;
};

class BlockReader : public testing::Test {
 protected:
  void add(const std::string& contents) {
    const auto path = folder_ / ("input" + std::to_string(paths_.size()));
    test::write_text(path, contents);
    paths_.push_back(path.string());
  }

  // All blocks, each checked for what holds of every block.
  std::vector<piece> read(std::size_t block_bytes) const {
    const std::vector<input_file> inputs = plan_inputs(paths_);
    block_reader reader(inputs, block_bytes);
    std::vector<piece> pieces;
    for (byte_block block; reader.next(block);) {
      EXPECT_GE(block.buffer.capacity(), block.size_bytes + record_parser::padding_bytes);
      EXPECT_FALSE(block.text().empty());
      pieces.push_back(
          {block.input, block.offset_bytes, std::string(block.text()), block.read_bytes});
    }
    return pieces;
  }

  static std::string joined(const std::vector<piece>& pieces, std::size_t input = 0) {
    std::string all;
    for (const piece& p : pieces) {
      if (p.input == input) all += p.text;
    }
    return all;
  }

  test::temp_folder folder_;
  std::vector<std::string> paths_;
};

// A cut inside a line, or between '\r' and '\n', would show as a line more or a line less.
TEST_F(BlockReader, NoCutChangesTheLinesOfAnyShortText) {
  test::for_all_texts("\r\n a", 5, [&](const std::string& text) {
    add(text);
    const std::vector<input_file> inputs = {{.path = paths_.back(), .size_bytes = text.size()}};
    for (const std::size_t block_bytes : {3U, 4U, 5U}) {
      block_reader reader(inputs, block_bytes);
      std::vector<std::string> lines;
      std::string all;
      for (byte_block block; reader.next(block);) {
        ASSERT_EQ(block.offset_bytes, all.size());
        all += block.text();
        for (auto& line : test::naive_lines(block.text())) lines.push_back(std::move(line));
      }
      ASSERT_EQ(all, text);
      ASSERT_EQ(lines, test::naive_lines(text))
          << testing::PrintToString(text) << " in blocks of " << block_bytes;
    }
  });
}

// The offsets are what an error message points a person to.
TEST_F(BlockReader, AnyBlockSizeGivesTheSameBytesAtTheSameOffsets) {
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

TEST_F(BlockReader, LeavesOutAByteOrderMarkAtTheStartOfEachFile) {
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

// It marks a file only as its first character; elsewhere it is U+FEFF, and not ours to drop.
TEST_F(BlockReader, KeepsAByteOrderMarkAnywhereElse) {
  const std::string mark(byte_order_mark);
  add(mark + mark + "a\n" + mark + "b\n");
  add("\n" + mark + "c\n");
  for (const std::size_t block_bytes : {3U, 4U, 6U, 4096U}) {
    const auto pieces = read(block_bytes);
    EXPECT_EQ(joined(pieces, 0), mark + "a\n" + mark + "b\n");
    EXPECT_EQ(joined(pieces, 1), "\n" + mark + "c\n");
  }
}

TEST_F(BlockReader, GivesNoBlockOfAFileThatIsOnlyAByteOrderMark) {
  add(std::string(byte_order_mark));
  EXPECT_TRUE(read(3).empty());
}

TEST_F(BlockReader, KeepsHalfAByteOrderMark) {
  add("\xEF\xBB");
  EXPECT_EQ(joined(read(64)), "\xEF\xBB");
}

// Old Macintosh files: if only '\n' were a place to cut, such a file would be one giant block.
TEST_F(BlockReader, CutsAFileThatHasOnlyReturns) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += std::to_string(i) + "\r";
  add(text);
  const auto pieces = read(64);
  EXPECT_EQ(joined(pieces), text);
  EXPECT_GT(pieces.size(), 40U);
  for (const piece& p : pieces) EXPECT_LE(p.text.size(), 64U);
}

// Blocks are what bounds memory: only a line that is longer may make one longer.
TEST_F(BlockReader, OnlyAGiantLineMakesAGiantBlock) {
  const std::string giant(100'000, 'g');
  add("a\nb\n" + giant + "\n" + "c\nd\n" + giant + "\r\n" + "e\n");
  const auto pieces = read(64);
  EXPECT_EQ(joined(pieces), test::read_text(paths_[0]));
  for (const piece& p : pieces) {
    const bool has_giant = p.text.find('g') != std::string::npos;
    EXPECT_LE(p.text.size(), has_giant ? giant.size() + 200 : 64U);
  }
}

// A last line without an end must not run into the first of the next file.
TEST_F(BlockReader, EndsABlockAtTheEndOfAFile) {
  add("");
  add("one");
  add("");
  add("two\r");
  add("\nthree");
  add("");
  for (const std::size_t block_bytes : {3U, 4096U}) {
    const auto pieces = read(block_bytes);
    ASSERT_EQ(pieces.size(), block_bytes == 3 ? 4U : 3U);
    EXPECT_EQ(joined(pieces, 1), "one");
    EXPECT_EQ(joined(pieces, 3), "two\r");
    EXPECT_EQ(joined(pieces, 4), "\nthree");
  }
}

TEST_F(BlockReader, GivesNothingForNoInput) {
  EXPECT_TRUE(read(64).empty());
}

TEST_F(BlockReader, StaysAtTheEnd) {
  add("a\n");
  const std::vector<input_file> inputs = plan_inputs(paths_);
  block_reader reader(inputs, 64);
  byte_block block;
  EXPECT_TRUE(reader.next(block));
  EXPECT_FALSE(reader.next(block));
  EXPECT_FALSE(reader.next(block));
}

// A bar that ends at 60 % because two files were compressed helps nobody.
TEST_F(BlockReader, CountsBytesOnDiskUpToTheLastOne) {
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

// The blocks before a fault are whole and good; the fault comes where it is.
TEST_F(BlockReader, GivesTheBlocksBeforeADamagedPlace) {
  std::mt19937_64 random(5);
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += std::to_string(random()) + "\n";
  const std::string packed = test::gzip(text);
  add(packed.substr(0, packed.size() / 2));
  const std::vector<input_file> inputs = plan_inputs(paths_);
  block_reader reader(inputs, 4096);
  std::string before;
  byte_block block;
  EXPECT_THROW(
      {
        while (reader.next(block)) before += block.text();
      },
      format_error);
  EXPECT_GT(before.size(), text.size() / 3);
  EXPECT_TRUE(text.starts_with(before));
}

TEST_F(BlockReader, NamesAnInputThatWentAwayAfterPlanning) {
  add("a\n");
  const std::vector<input_file> inputs = plan_inputs(paths_);
  std::filesystem::remove(paths_[0]);
  block_reader reader(inputs, 64);
  byte_block block;
  try {
    reader.next(block);
    ADD_FAILURE() << "read a file that is not there";
  } catch (const io_error& e) {
    EXPECT_EQ(e.code(), ENOENT);
    EXPECT_EQ(e.path(), paths_[0]);
  }
}

}  // namespace
}  // namespace millrace::preprocess
