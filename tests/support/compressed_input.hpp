// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>

#include <millrace/error.hpp>

#include "input/byte_source.hpp"
#include "support/paths.hpp"

/// Files of some bytes, and what a byte_source makes of them.
namespace millrace::test {

// Little repeats in it, so it has bytes of every kind of deflate block and zstd literal.
inline std::string some_text(std::size_t size, unsigned seed = 7) {
  std::mt19937 random(seed);
  std::string text;
  while (text.size() < size) {
    text += random() % 3 == 0 ? std::string("and again the same words\n")
                              : std::to_string(random()) + "\n";
  }
  text.resize(size);
  return text;
}

class compressed_input : public testing::Test {
 protected:
  // What comes out of a file of these bytes, read `step` bytes at a time.
  std::string read(std::string_view file, preprocess::compression compressed_with,
                   std::size_t step = 4096) const {
    write_text(path(), file);
    const auto source = preprocess::open_input({path(), compressed_with, file.size()});
    std::string all;
    std::string part(step, '?');
    while (true) {
      const std::size_t n = source->read(std::as_writable_bytes(std::span(part)));
      EXPECT_LE(n, step);
      all += part.substr(0, n);
      if (n == 0) break;
    }
    EXPECT_EQ(source->read(std::as_writable_bytes(std::span(part))), 0U) << "the end stays";
    EXPECT_EQ(source->position_bytes(), file.size());
    return all;
  }

  // The text, or nothing if the file is refused by the error that a damaged file must give.
  std::optional<std::string> read_or_refuse(std::string_view file,
                                            preprocess::compression compressed_with) const {
    try {
      return read(file, compressed_with);
    } catch (const format_error& e) {
      EXPECT_EQ(e.path(), path());
      return std::nullopt;
    }
  }

  std::filesystem::path path() const { return folder_ / "input"; }

  temp_folder folder_;
};

}  // namespace millrace::test
