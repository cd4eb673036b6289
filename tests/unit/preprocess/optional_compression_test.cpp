// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <millrace/error.hpp>

#include "input/byte_source.hpp"
#include "support/compress_with.hpp"
#include "support/compressed_input.hpp"

namespace millrace::preprocess {
namespace {

using test::some_text;

/// The kinds of compression that a build may lack.
class OptionalKind : public test::compressed_input {
 protected:
  struct kind {
    compression compressed_with;
    std::vector<std::string> program;
  };
  static std::vector<kind> kinds() {
    std::vector<kind> all;
    const std::string parts = optional_input_parts();
    if (parts.find("without bzip2") == parts.npos) {
      all.push_back({compression::bzip2, {"bzip2"}});
      all.push_back({compression::bzip2, {"bzip2", "-1"}});
    }
    if (parts.find("without liblzma") == parts.npos) {
      all.push_back({compression::xz, {"xz", "-1"}});
      all.push_back({compression::xz, {"xz", "-0", "--check=none"}});
      all.push_back({compression::xz, {"xz", "-T2", "--block-size=65536"}});
    }
    return all;
  }
};

TEST_F(OptionalKind, ReadsWhatItsProgramCompressed) {
  const std::string text = some_text(1'500'000);
  for (const auto& [compressed_with, program] : kinds()) {
    const std::string compressed = test::compress_with(program, text);
    EXPECT_EQ(compression_of(std::as_bytes(std::span(compressed))), compressed_with);
    for (const std::size_t step : {1000U, 1'500'001U}) {
      EXPECT_EQ(read(compressed, compressed_with, step), text);
    }
    const std::string nothing = test::compress_with(program, "");
    EXPECT_EQ(read(nothing, compressed_with), "");
    EXPECT_EQ(compression_of(std::as_bytes(std::span(nothing))), compressed_with);
  }
}

TEST_F(OptionalKind, JoinsStreams) {
  for (const auto& [compressed_with, program] : kinds()) {
    std::string compressed;
    std::string text;
    for (unsigned i = 0; i < 12; ++i) {
      const std::string part = some_text(i % 5 == 0 ? 0 : i * 9000, i);
      compressed += test::compress_with(program, part);
      if (compressed_with == compression::xz && i % 2 == 0)
        compressed += std::string(std::size_t{4} * i, '\0');
      text += part;
    }
    EXPECT_EQ(read(compressed, compressed_with), text);
    EXPECT_EQ(read(compressed, compressed_with, text.size()), text);
  }
}

TEST_F(OptionalKind, RefusesEveryTruncation) {
  for (const auto& [compressed_with, program] : kinds()) {
    const std::string first = test::compress_with(program, some_text(300));
    const std::string whole = first + test::compress_with(program, some_text(200));
    for (std::size_t size = 1; size < whole.size(); ++size) {
      if (size == first.size()) continue;  // one complete stream
      EXPECT_EQ(read_or_refuse(whole.substr(0, size), compressed_with), std::nullopt)
          << program.front() << ": first " << size << " of " << whole.size() << " bytes";
    }
  }
}

TEST_F(OptionalKind, GivesNoOtherTextForAnyDamagedByte) {
  const std::string text = some_text(300);
  for (const auto& [compressed_with, program] : kinds()) {
    if (program.back() == "--check=none") continue;  // damage would go unnoticed
    const std::string whole = test::compress_with(program, text);
    std::size_t refused = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const unsigned flip : {0x01U, 0xFFU}) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ flip);
        const auto read_text = read_or_refuse(damaged, compressed_with);
        if (!read_text) ++refused;
        EXPECT_EQ(read_text.value_or(text), text)
            << program.front() << ": byte " << at << " changed by " << flip;
      }
    }
    EXPECT_GT(refused, whole.size());
  }
}

TEST_F(OptionalKind, RefusesGarbageBehindTheData) {
  for (const auto& [compressed_with, program] : kinds()) {
    const std::string compressed = test::compress_with(program, "text");
    for (const std::string_view garbage : {"x", "garbage", "BZ", "\xFD", "\x1F\x8B"}) {
      EXPECT_EQ(read_or_refuse(compressed + std::string(garbage), compressed_with), std::nullopt)
          << garbage;
    }
    EXPECT_EQ(read_or_refuse(compressed + std::string(3, '\0'), compressed_with), std::nullopt);
  }
}

// Each kind of compression needs a library. Without this library, a compressed file is refused when
// the run is planned, and a compressed pipe when the pipe is read.
TEST_F(OptionalKind, IsRefusedByNameWithoutItsLibrary) {
  const std::string parts = optional_input_parts();
  for (const auto& [part, compressed_with] : {std::pair("without bzip2", compression::bzip2),
                                              std::pair("without liblzma", compression::xz)}) {
    if (parts.find(part) == parts.npos) {
      EXPECT_NO_THROW(expect_library_for(compressed_with, "file"));
      continue;
    }
    EXPECT_THROW(expect_library_for(compressed_with, "file"), config_error);
    EXPECT_THROW((void)open_input({.path = "/dev/null", .compressed_with = compressed_with}),
                 config_error);
  }
}

}  // namespace
}  // namespace millrace::preprocess
