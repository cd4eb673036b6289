// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "input/block_readers.hpp"
#include "input/block_source.hpp"
#include "record/record_parser.hpp"
#include "support/paths.hpp"

/// Reads inputs in blocks of a given size.
namespace millrace::test {

struct piece {
  std::size_t input = 0;
  std::uint64_t offset = 0;
  std::string text;
  std::uint64_t read_bytes = 0;
};

/// Reads the text of a block that has no rows.
inline void read_whole_span(preprocess::byte_block& block, const preprocess::read_limits& limits) {
  preprocess::row_text rows;
  preprocess::read_span(block, limits, rows);
}

class read_blocks : public testing::Test {
 protected:
  void add(const std::string& contents) {
    const auto path = folder_ / ("input" + std::to_string(paths_.size()));
    write_text(path, contents);
    paths_.push_back(path.string());
  }

  // Returns all nonempty blocks. Checks the rules that apply to every block.
  std::vector<piece> read(std::size_t block_bytes) const {
    const std::vector<preprocess::input_file> inputs = preprocess::plan_inputs(paths_);
    return read(inputs, {.end = {inputs.size(), 0}}, block_bytes);
  }
  static std::vector<piece> read(const std::vector<preprocess::input_file>& inputs,
                                 const preprocess::read_range& range, std::size_t block_bytes) {
    const preprocess::read_limits limits{.block_bytes = block_bytes};
    preprocess::block_source source(inputs, range, limits);
    std::vector<piece> pieces;
    for (preprocess::byte_block block; source.next(block);) {
      read_whole_span(block, limits);
      EXPECT_GE(block.buffer.capacity(),
                block.text_at + block.text_bytes + preprocess::record_parser::padding_bytes);
      EXPECT_EQ(block.end - block.begin, block.text_bytes);
      if (block.text().empty()) continue;
      pieces.push_back(
          {block.input, block.text_offset(), std::string(block.text()), block.read_bytes});
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

  temp_folder folder_;
  std::vector<std::string> paths_;
};

}  // namespace millrace::test
