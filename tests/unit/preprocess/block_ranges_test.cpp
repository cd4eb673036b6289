// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>

#include "input/block_source.hpp"
#include "support/compressed.hpp"
#include "support/naive_lines.hpp"
#include "support/paths.hpp"
#include "support/read_blocks.hpp"

/// These tests read only parts of the inputs, as tasks and resumed runs do.
namespace millrace::preprocess {
namespace {

using test::piece;
using BlockRanges = test::read_blocks;

// However a text is cut into adjacent ranges, every line is read exactly once.
TEST_F(BlockRanges, RangesSideBySideShareAllLines) {
  add("");
  test::for_all_texts("\r\n a", 5, [&](const std::string& text) {
    test::write_text(paths_[0], text);
    const std::vector<input_file> inputs = plan_inputs(paths_);
    for (std::uint64_t a = 0; a <= text.size(); ++a) {
      for (std::uint64_t b = a; b <= text.size(); ++b) {
        std::string all;
        const std::uint64_t cuts[] = {0, a, b, text.size()};
        for (int part = 0; part < 3; ++part) {
          if (cuts[part] == cuts[part + 1]) continue;
          const read_range range{
              .begin = {0, cuts[part]}, .end = {0, cuts[part + 1]}, .at_line = cuts[part] == 0};
          for (const piece& p : read(inputs, range, 2)) {
            ASSERT_EQ(p.offset, all.size());
            all += p.text;
          }
        }
        ASSERT_EQ(all, text) << "cut at " << a << " and " << b;
      }
    }
  });
}

// A resumed run starts at the beginning of a line, even in files that can only be read from the
// start.
TEST_F(BlockRanges, GoesOnInTheMiddle) {
  const std::string text = "one\ntwo\nthree\nfour\n";
  add(text);
  add(test::gzip(text));
  const std::vector<input_file> inputs = plan_inputs(paths_);
  const auto before = std::as_bytes(std::span(text).first(8));
  for (const std::size_t input : {0U, 1U}) {
    const auto pieces = read(
        inputs, {.begin = {input, 8}, .end = {input + 1, 0}, .crc32c = formats::crc32c(before)}, 4);
    EXPECT_EQ(joined(pieces, input), "three\nfour\n");
    EXPECT_EQ(pieces.front().offset, 8U);
  }
}

// A task was interrupted before its last line, and resumes with that line. The line begins at the
// byte where the next task's range begins.
TEST_F(BlockRanges, GoesOnWithTheLineThatBeginsAtTheEnd) {
  add("one\ntwo\nthree\n");
  const std::vector<input_file> inputs = plan_inputs(paths_);
  for (const std::size_t block_bytes : {1U, 4U, 64U}) {
    const auto mine = read(inputs, {.begin = {0, 4}, .end = {0, 4}}, block_bytes);
    EXPECT_EQ(joined(mine), "two\n");
    const auto next = read(inputs, {.begin = {0, 4}, .end = {1, 0}, .at_line = false}, block_bytes);
    EXPECT_EQ(joined(next), "three\n");
  }
}

TEST_F(BlockRanges, RefusesToGoOnBehindOtherText) {
  add(test::gzip("one\ntwo\nthree\nfour\n"));
  const std::vector<input_file> inputs = plan_inputs(paths_);
  EXPECT_THROW(read(inputs, {.begin = {0, 8}, .end = {1, 0}, .crc32c = 17}, 4), config_error);
}

// Resuming within a line is refused. A run stops only after a line end or at the end of the text.
TEST_F(BlockRanges, RefusesToGoOnWithinALine) {
  const auto goes_on = [&](const std::string& read_before, const std::string& text) {
    paths_.clear();
    add(test::gzip(text));
    const auto before = std::as_bytes(std::span(read_before));
    const std::vector<input_file> inputs = plan_inputs(paths_);
    return joined(
        read(inputs,
             {.begin = {0, before.size()}, .end = {1, 0}, .crc32c = formats::crc32c(before)}, 4));
  };
  EXPECT_EQ(goes_on("one\ntwo", "one\ntwo"), "");
  EXPECT_EQ(goes_on("one\ntwo\r", "one\ntwo\r"), "");
  EXPECT_EQ(goes_on("one\ntwo\r", "one\ntwo\rthree\n"), "three\n");
  EXPECT_EQ(goes_on("one\ntwo\r\n", "one\ntwo\r\n\nthree"), "\nthree");
  EXPECT_THROW(goes_on("one\ntwo", "one\ntwofold\n"), config_error);
  EXPECT_THROW(goes_on("one\ntwo", "one\ntwo\n"), config_error);
  EXPECT_THROW(goes_on("one\ntwo\r", "one\ntwo\r\n"), config_error);
}

}  // namespace
}  // namespace millrace::preprocess
