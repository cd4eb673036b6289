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

/// Writes files with given bytes and reads them through a `byte_source`.
namespace millrace::test {

// Returns a text with some repetition. Its compressed form therefore has all kinds of deflate
// blocks and zstd literals.
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
  // Writes `file` to disk and returns the bytes that its `byte_source` reads, at most `step` bytes
  // per read.
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

  // Same as read(), but returns nullopt if the `byte_source` throws format_error, as it must for a
  // damaged file.
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
