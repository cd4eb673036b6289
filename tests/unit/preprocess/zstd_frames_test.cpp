// SPDX-License-Identifier: Apache-2.0
#include "input/zstd_frames.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/error.hpp>

#include "input/input_plan.hpp"
#include "support/compressed.hpp"
#include "support/compressed_input.hpp"
#include "support/read_source.hpp"

namespace millrace::preprocess {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::ThrowsMessage;

constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;

// Returns a frame with a window of 2^log bytes and uncompressed blocks. Its header contains the
// size of the text if `tells_size` is true.
std::string frame(std::string_view text, unsigned log, bool tells_size) {
  std::string out = "\x28\xB5\x2F\xFD";
  out += tells_size ? '\x80' : '\0';
  out += static_cast<char>((log - 10) << 3);
  if (tells_size) out += test::little_endian(static_cast<std::uint32_t>(text.size()), 4);
  constexpr std::size_t block = 100'000;
  do {
    const std::string_view part = text.substr(0, block);
    text.remove_prefix(part.size());
    out += test::little_endian(
        static_cast<std::uint32_t>(part.size() << 3 | (text.empty() ? 1 : 0)), 3);
    out += part;
  } while (!text.empty());
  return out;
}

std::optional<zstd_window> window_of(std::string_view head) {
  return zstd_window_of(std::as_bytes(std::span(head)));
}

TEST(ZstdWindow, IsWhatTheHeaderDeclares) {
  EXPECT_EQ(window_of(frame("text", 31, false))->window_bytes, 2048 * mebibyte);
  EXPECT_EQ(window_of(frame("text", 31, false))->memory_bytes, 2048 * mebibyte);
  std::string eighths = frame("text", 20, false);
  eighths[5] = static_cast<char>(eighths[5] | 3);
  EXPECT_EQ(window_of(eighths)->window_bytes, mebibyte + 3 * (mebibyte / 8));
}

TEST(ZstdWindow, TakesNoMoreMemoryThanTheTextThatTheHeaderDeclares) {
  const auto window = window_of(frame("text", 31, true));
  EXPECT_EQ(window->window_bytes, 2048 * mebibyte);
  EXPECT_EQ(window->memory_bytes, 4U);
  // In a single-segment frame, the window is as large as the text.
  EXPECT_EQ(window_of(test::zstd("text"))->window_bytes, 4U);
}

TEST(ZstdWindow, IsNoneOfSkippableFramesAndOfHeadersThatAreCutOff) {
  EXPECT_EQ(window_of(test::zstd_skippable("a text")), std::nullopt);
  EXPECT_EQ(window_of("something else"), std::nullopt);
  for (std::size_t size = 0; size < 10; ++size) {
    EXPECT_EQ(window_of(frame("text", 31, true).substr(0, size)), std::nullopt) << size;
  }
}

class ZstdWindows : public test::compressed_input {
 protected:
  // Reads a file with a limit on the memory of a window.
  std::string read_within(std::uint64_t most_bytes, std::string_view file) const {
    test::write_text(path(), file);
    return test::read_source(*open_input({.path = path(),
                                          .compressed_with = compression::zstd,
                                          .size_bytes = file.size(),
                                          .regular = true,
                                          .most_window_bytes = most_bytes}));
  }
};

TEST_F(ZstdWindows, OfUpTo2GiBAreDecompressed) {
  const std::string text = test::some_text(300'000);
  for (const unsigned log : {20U, 27U, 28U, 29U, 30U, 31U}) {
    EXPECT_EQ(read(frame(text, log, false), compression::zstd), text) << log;
    EXPECT_EQ(read(frame(text, log, true), compression::zstd), text) << log;
  }
}

TEST_F(ZstdWindows, AboveTheLimitAreRefusedByName) {
  const auto refused = [&] { (void)read_within(1024 * mebibyte, frame("text", 31, false)); };
  EXPECT_THAT(refused, ThrowsMessage<config_error>(
                           AllOf(HasSubstr(path().string()), HasSubstr("needs a window of 2048 MB"),
                                 HasSubstr("1024 MB allowed"), HasSubstr("--zstd-memory 2048"),
                                 Not(HasSubstr("damaged")))));
  EXPECT_EQ(read_within(1024 * mebibyte, frame("text", 30, false)), "text");
}

TEST_F(ZstdWindows, OfShortTextsPassAnyLimit) {
  EXPECT_EQ(read_within(least_zstd_window_bytes, frame("text", 31, true)), "text");
}

// A window size that no compressor makes counts as damage. A flipped bit may cause such a size.
TEST_F(ZstdWindows, ThatNoCompressorMakesAreDamage) {
  const std::string file = frame(test::some_text(300'000), 32, false);
  EXPECT_THAT([&] { (void)read_within(least_zstd_window_bytes, file); },
              ThrowsMessage<format_error>(
                  AllOf(HasSubstr("damaged zstd data: a frame declares a window of 4096 MB"),
                        HasSubstr("more than the 2048 MB of zstd --long=31"))));
  EXPECT_EQ(plan_inputs(std::vector<std::string>{path().string()}).size(), 1U);
}

// A frame's window is checked only after the text before the frame was returned. Compressed bytes
// are read 256 KiB at a time, so the second header can be split between two reads.
TEST_F(ZstdWindows, AreCheckedOfEachFrameAfterTheTextBeforeIt) {
  constexpr std::size_t chunk = std::size_t{256} << 10;
  const std::string first = frame("first", 20, false);
  for (std::size_t in_front = 0; in_front <= 8; ++in_front) {
    const std::string gap(chunk - first.size() - 8 - in_front, 's');
    const std::string before = first + test::zstd_skippable(gap);
    EXPECT_EQ(read_within(mebibyte * 8, before + frame(" second", 23, false)), "first second");
    test::write_text(path(), before + frame(" second", 24, false));
    const input_file file = {.path = path(),
                             .compressed_with = compression::zstd,
                             .regular = true,
                             .most_window_bytes = 8 * mebibyte};
    const auto source = open_input_at(file, {});
    std::string room(100, '?');
    const auto out = std::as_writable_bytes(std::span(room));
    ASSERT_EQ(source->read(out), 5U) << in_front;
    EXPECT_THAT([&] { (void)source->read(out); },
                ThrowsMessage<config_error>(HasSubstr("(after 5 decompressed bytes)")));
  }
}

TEST_F(ZstdWindows, DoNotMakeDamageARefusal) {
  std::string damaged = frame(test::some_text(1000), 31, false);
  damaged[6] = static_cast<char>(damaged[6] | 6);  // a reserved block type
  EXPECT_THAT([&] { (void)read(damaged, compression::zstd); },
              ThrowsMessage<format_error>(HasSubstr("damaged zstd data")));
}

TEST_F(ZstdWindows, AreCheckedBeforeARunBegins) {
  test::write_text(path(), frame("text", 31, false));
  const std::vector<std::string> names = {path().string()};
  EXPECT_THAT([&] { (void)plan_inputs(names, {.most_window_bytes = 8 * mebibyte}); },
              ThrowsMessage<config_error>(HasSubstr("needs a window of 2048 MB")));
  const auto planned = plan_inputs(names, {.most_window_bytes = 2048 * mebibyte});
  EXPECT_EQ(planned.at(0).window_bytes, 2048 * mebibyte);
  EXPECT_EQ(planned.at(0).most_window_bytes, 2048 * mebibyte);
}

}  // namespace
}  // namespace millrace::preprocess
