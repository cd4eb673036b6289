// SPDX-License-Identifier: Apache-2.0
#include "input/byte_source.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <utility>

#include <millrace/error.hpp>

#include "support/compressed.hpp"
#include "support/compressed_input.hpp"

namespace millrace::preprocess {
namespace {

using test::some_text;
using ByteSource = test::compressed_input;

TEST_F(ByteSource, ReadsAPlainFileInAnySteps) {
  const std::string text = some_text(10'000);
  for (const std::size_t step : {1U, 7U, 4096U, 10'000U, 10'001U}) {
    EXPECT_EQ(read(text, compression::none, step), text);
  }
}

TEST_F(ByteSource, ReadsAnEmptyPlainFile) {
  EXPECT_EQ(read("", compression::none), "");
}

// Compressed files can be read in steps of any size. The text is longer than the 256 KiB chunk in
// which compressed bytes are read.
TEST_F(ByteSource, ReadsCompressedFilesInAnySteps) {
  const std::string text = some_text(1'500'000);
  for (const std::size_t step : {1000U, 65'536U, 1'500'000U, 1'500'001U}) {
    EXPECT_EQ(read(test::gzip(text), compression::gzip, step), text);
    EXPECT_EQ(read(test::zstd(text), compression::zstd, step), text);
  }
}

TEST_F(ByteSource, ReadsACompressedEmptyText) {
  EXPECT_EQ(read(test::gzip(""), compression::gzip), "");
  EXPECT_EQ(read(test::zstd(""), compression::zstd), "");
}

// The members of a gzip file are joined. Shards are often joined with `cat a.gz b.gz`, and parallel
// compressors always write several members.
TEST_F(ByteSource, JoinsTheMembersOfAGzipFile) {
  std::string compressed;
  std::string text;
  for (unsigned i = 0; i < 40; ++i) {
    const std::string part = some_text(i % 5 == 0 ? 0 : i * 4000, i);
    compressed += test::gzip(part);
    text += part;
  }
  ASSERT_GT(compressed.size(), std::size_t{512} << 10)
      << "members must lie over the edges of chunks";
  EXPECT_EQ(read(compressed, compression::gzip), text);
  EXPECT_EQ(read(compressed, compression::gzip, text.size() + 1), text);
}

// A chunk of compressed bytes may end exactly where a member ends, or inside the header of the next
// member.
TEST_F(ByteSource, JoinsMembersWhereverAChunkEnds) {
  const std::string second = test::gzip("second");
  const std::size_t chunk = std::size_t{256} << 10;
  for (std::size_t before_edge = 0; before_edge <= second.size(); ++before_edge) {
    // The length of the comment moves the member's end to the wanted place.
    const std::string first = test::gzip("first");
    const std::size_t wanted = chunk - before_edge;
    const std::string comment(wanted - first.size() - 1, 'c');
    const std::string padded = test::gzip("first", {.comment = comment});
    ASSERT_EQ(padded.size(), wanted);
    EXPECT_EQ(read(padded + second, compression::gzip), "firstsecond")
        << before_edge << " bytes of the second member before the edge";
  }
}

// Every optional part of a gzip header is read: bgzip writes extra fields, gzip writes file names,
// and some tools write the other parts of RFC 1952.
TEST_F(ByteSource, ReadsEveryOptionalPartOfAGzipHeader) {
  const std::string extra("BC\x02\0\x1B\0", 6);
  EXPECT_EQ(read(test::gzip("text", {.extra = extra}), compression::gzip), "text");
  EXPECT_EQ(read(test::gzip("text", {.name = "a.jsonl"}), compression::gzip), "text");
  EXPECT_EQ(read(test::gzip("text", {.comment = "c"}), compression::gzip), "text");
  EXPECT_EQ(read(test::gzip("text", {.checksum = true}), compression::gzip), "text");
  EXPECT_EQ(
      read(test::gzip("text", {.extra = extra, .name = "n", .comment = "c", .checksum = true}),
           compression::gzip),
      "text");
}

TEST_F(ByteSource, JoinsTheFramesOfAZstdFile) {
  std::string compressed = test::zstd_skippable("a seek table, or whatever");
  std::string text;
  for (unsigned i = 0; i < 20; ++i) {
    const std::string part = some_text(i % 5 == 0 ? 0 : i * 9000, i);
    compressed += test::zstd(part);
    if (i % 3 == 0) compressed += test::zstd_skippable(std::string(std::size_t{i} * 1000, 's'));
    text += part;
  }
  EXPECT_EQ(read(compressed, compression::zstd), text);
  EXPECT_EQ(read(compressed, compression::zstd, text.size()), text);
}

TEST_F(ByteSource, ReadsNothingFromSkippableFramesAlone) {
  EXPECT_EQ(read(test::zstd_skippable("nothing") + test::zstd_skippable(""), compression::zstd),
            "");
}

// Every truncation is refused. A truncated copy is the most common damage. Accepting it as a
// shorter text would lose data unnoticed.
TEST_F(ByteSource, RefusesEveryTruncationOfGzip) {
  const std::string whole = test::gzip(some_text(300), {.name = "n", .checksum = true});
  for (std::size_t size = 1; size < whole.size(); ++size) {
    EXPECT_EQ(read_or_refuse(whole.substr(0, size), compression::gzip), std::nullopt)
        << "first " << size << " of " << whole.size() << " bytes";
  }
}

TEST_F(ByteSource, RefusesEveryTruncationOfTheSecondGzipMember) {
  const std::string first = test::gzip("first");
  const std::string second = test::gzip(some_text(100));
  for (std::size_t size = 1; size < second.size(); ++size) {
    EXPECT_EQ(read_or_refuse(first + second.substr(0, size), compression::gzip), std::nullopt)
        << "first " << size << " of " << second.size() << " bytes of the second";
  }
}

TEST_F(ByteSource, RefusesEveryTruncationOfZstd) {
  const std::string frame = test::zstd(some_text(300));
  const std::string whole = test::zstd_skippable("skipped") + frame;
  const std::size_t skippable = whole.size() - frame.size();
  for (std::size_t size = 1; size < whole.size(); ++size) {
    if (size == skippable) continue;  // one complete frame
    EXPECT_EQ(read_or_refuse(whole.substr(0, size), compression::zstd), std::nullopt)
        << "first " << size << " of " << whole.size() << " bytes";
  }
}

// A truncation is refused for every step size. The missing bytes may be exactly those that did not
// fit into the reader's buffer.
TEST_F(ByteSource, RefusesATruncationWhateverTheStep) {
  const std::string text = some_text(300'000);
  for (const std::size_t step : {1000U, 300'000U, 400'000U}) {
    const std::string gz = test::gzip(text);
    EXPECT_THROW(read(gz.substr(0, gz.size() - 1), compression::gzip, step), format_error);
    const std::string zst = test::zstd(text);
    EXPECT_THROW(read(zst.substr(0, zst.size() - 1), compression::zstd, step), format_error);
  }
}

// A damaged byte never leads to another text. The damage is either detected or, as in some bytes of
// a gzip header, has no effect on the text.
TEST_F(ByteSource, GivesNoOtherTextForAnyDamagedByte) {
  const std::string text = some_text(300);
  for (const auto& [whole, compressed_with] : {std::pair(test::gzip(text), compression::gzip),
                                               std::pair(test::zstd(text), compression::zstd)}) {
    std::size_t refused = 0;
    for (std::size_t at = 0; at < whole.size(); ++at) {
      for (const unsigned flip : {0x01U, 0x80U, 0xFFU}) {
        std::string damaged = whole;
        damaged[at] = static_cast<char>(static_cast<unsigned char>(damaged[at]) ^ flip);
        const auto read_text = read_or_refuse(damaged, compressed_with);
        if (!read_text) ++refused;
        EXPECT_EQ(read_text.value_or(text), text) << "byte " << at << " changed by " << flip;
      }
    }
    EXPECT_GT(refused, 2 * whole.size());
  }
}

TEST_F(ByteSource, RefusesGarbageBehindTheData) {
  for (const std::string_view garbage : {"x", "garbage", "\x1F", "\x1F\x8B", "\x28\xB5"}) {
    EXPECT_EQ(read_or_refuse(test::gzip("text") + std::string(garbage), compression::gzip),
              std::nullopt)
        << garbage;
    EXPECT_EQ(read_or_refuse(test::zstd("text") + std::string(garbage), compression::zstd),
              std::nullopt)
        << garbage;
  }
}

// Zeros after gzip data are accepted. Tapes and block devices pad with zeros. gzip itself accepts
// them silently.
TEST_F(ByteSource, TakesZerosBehindGzipData) {
  for (const std::size_t zeros : {1U, 511U, 300'000U}) {
    const std::string padding(zeros, '\0');
    EXPECT_EQ(read(test::gzip("te") + test::gzip("xt") + padding, compression::gzip), "text");
    EXPECT_EQ(read_or_refuse(test::gzip("text") + padding + "x", compression::gzip), std::nullopt);
    EXPECT_EQ(read_or_refuse(test::gzip("te") + padding + test::gzip("xt"), compression::gzip),
              std::nullopt);
    EXPECT_EQ(read_or_refuse(test::zstd("text") + padding, compression::zstd), std::nullopt);
  }
}

// The offset in the error shows how much of the text can be recovered.
TEST_F(ByteSource, TellsHowFarTheTextIsGood) {
  const std::string text = some_text(1'000'000);
  for (const auto& [whole, compressed_with] : {std::pair(test::gzip(text), compression::gzip),
                                               std::pair(test::zstd(text), compression::zstd)}) {
    try {
      read(whole.substr(0, whole.size() / 2), compressed_with, 1000);
      ADD_FAILURE() << "accepted";
    } catch (const format_error& e) {
      EXPECT_GT(e.offset(), text.size() / 4) << e.what();
      EXPECT_LT(e.offset(), text.size() * 3 / 4) << e.what();
    }
  }
}

TEST_F(ByteSource, NamesAFileThatIsNotThere) {
  for (const auto compressed_with : {compression::none, compression::gzip, compression::zstd}) {
    try {
      (void)open_input({.path = folder_ / "none", .compressed_with = compressed_with});
      ADD_FAILURE() << "opened";
    } catch (const io_error& e) {
      EXPECT_EQ(e.code(), ENOENT);
      EXPECT_EQ(e.path(), folder_ / "none");
    }
  }
}

// If the disk reports a read error, the decompressor must pass it on and must not report bad data.
TEST_F(ByteSource, TellsAReadErrorAsSuch) {
  for (const auto compressed_with : {compression::none, compression::gzip, compression::zstd}) {
    const auto source = open_input({.path = folder_.path(), .compressed_with = compressed_with});
    std::array<std::byte, 16> out{};
    try {
      (void)source->read(out);
      ADD_FAILURE() << "read a folder";
    } catch (const io_error& e) {
      EXPECT_EQ(e.code(), EISDIR) << e.what();
    }
  }
}

}  // namespace
}  // namespace millrace::preprocess
