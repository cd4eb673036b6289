// SPDX-License-Identifier: Apache-2.0
#include "input/restart_points.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/error.hpp>

#include "input/byte_source.hpp"
#include "support/compress_with.hpp"
#include "support/compressed.hpp"
#include "support/paths.hpp"
#include "support/read_source.hpp"

namespace millrace::preprocess {
namespace {

constexpr std::size_t mebibyte = std::size_t{1} << 20;

class RestartPoints : public testing::Test {
 protected:
  input_file write(std::string_view bytes) const {
    test::write_text(folder_ / "input", bytes);
    return plan_inputs(std::vector<std::string>{(folder_ / "input").string()}).at(0);
  }

  std::vector<restart_point> points(std::string_view bytes) const {
    return find_restart_points(write(bytes));
  }

  // Returns the text of a file, read from the start. Returns nothing if the file is refused.
  static std::optional<std::string> from_front(const input_file& file) {
    try {
      return test::read_source(*open_input_at(file, {}));
    } catch (const format_error&) {
      return std::nullopt;
    }
  }

  // Returns the text of a file from separate reads. Each read starts at a restart point and ends
  // exactly at the next one.
  static std::optional<std::string> by_pieces(const input_file& file,
                                              std::span<const restart_point> points) {
    std::string all;
    try {
      for (std::size_t k = 0; k + 1 < points.size(); ++k) {
        const auto source = open_input_at(file, points[k], points.subspan(k + 1));
        const std::uint64_t size = points[k + 1].text_offset - points[k].text_offset;
        const std::string piece = test::read_source(*source, size, 300'001);
        EXPECT_EQ(piece.size(), size);
        all += piece;
      }
    } catch (const format_error&) {
      return std::nullopt;
    }
    return all;
  }

  // Expects that the restart points of a valid file are in order, and that reading from each point
  // gives the rest of the text.
  void expect_sound(std::string_view bytes, std::string_view text, std::size_t pieces) const {
    const input_file file = write(bytes);
    const auto found = find_restart_points(file);
    ASSERT_EQ(found.size(), pieces == 0 ? 0 : pieces + 1);
    EXPECT_EQ(from_front(file), text);
    if (found.empty()) return;
    EXPECT_EQ(found.front(), (restart_point{0, 0}));
    EXPECT_EQ(found.back(), (restart_point{bytes.size(), text.size()}));
    for (std::size_t k = 0; k + 1 < found.size(); ++k) {
      EXPECT_LT(found[k].compressed_offset, found[k + 1].compressed_offset);
      const std::uint64_t size = found[k + 1].text_offset - found[k].text_offset;
      EXPECT_GE(size, k + 2 == found.size() ? 1 : mebibyte);
      const auto later = std::span(found).subspan(k + 1);
      EXPECT_EQ(test::read_source(*open_input_at(file, found[k], later)),
                text.substr(found[k].text_offset))
          << "from point " << k;
      EXPECT_EQ(test::read_source(*open_input_at(file, found[k])),
                text.substr(found[k].text_offset))
          << "from point " << k << ", without proof";
    }
    EXPECT_EQ(by_pieces(file, found), text);
  }

  // The bytes may be anything. Expects that reading in pieces and reading from the start give the
  // same text, or that both refuse the file.
  //
  // @return whether the file was refused
  bool expect_as_from_front(std::string_view bytes) const {
    const input_file file = write(bytes);
    const auto found = find_restart_points(file);
    const auto front = from_front(file);
    if (!found.empty()) {
      EXPECT_EQ(by_pieces(file, found), front);
    }
    return !front;
  }

  test::temp_folder folder_{test::quick_folder()};
};

// Returns lines of letters. They compress well, to a different size for each seed.
std::string seeded_text(std::size_t size, std::size_t seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  std::string text(size, static_cast<char>('a' + seed % 26));
  for (std::size_t at = 0; at < size; at += 64 + random() % 512) text[at] = '\n';
  return text;
}

// Makes a BGZF member, which has its size in the header.
std::string bgzf(std::string_view text) {
  std::string extra("BC\x02\0\0\0", 6);
  const std::size_t size = test::gzip(text, {.extra = extra}).size() - 1;
  extra[4] = static_cast<char>(size & 0xFF);
  extra[5] = static_cast<char>(size >> 8);
  return test::gzip(text, {.extra = extra});
}

TEST_F(RestartPoints, LeadToTheTextOfZstdFrames) {
  std::string compressed = test::zstd_skippable("a seek table");
  std::string text;
  for (std::size_t i = 0; i < 12; ++i) {
    const std::string part = seeded_text(i % 4 == 0 ? 0 : mebibyte + i * 100'003, i);
    compressed += test::zstd(part);
    if (i % 3 == 0) compressed += test::zstd_skippable(std::string(i * 1000, 's'));
    text += part;
  }
  expect_sound(compressed, text, 9);
  expect_sound(compressed + test::zstd("") + test::zstd_skippable("end"), text, 9);
}

TEST_F(RestartPoints, LeadToTheTextOfGzipMembers) {
  std::string compressed;
  std::string text;
  for (std::size_t i = 0; i < 12; ++i) {
    const std::string part = seeded_text(i % 4 == 0 ? 0 : mebibyte + i * 100'003, i);
    compressed += test::gzip(part, {.name = i % 2 == 0 ? "name" : ""});
    text += part;
  }
  expect_sound(compressed, text, 9);
}

TEST_F(RestartPoints, LeadToTheTextOfBgzf) {
  std::string compressed;
  std::string text;
  for (unsigned i = 0; i < 100; ++i) {
    const std::string part = seeded_text(65'280, i);
    compressed += bgzf(part);
    text += part;
  }
  expect_sound(compressed + bgzf(""), text, 6);
  expect_sound(compressed + bgzf("") + std::string(100'000, '\0'), text, 6);
}

// The restart points of files from four common compressors lead to the right text.
TEST_F(RestartPoints, LeadToTheTextThatOtherProgramsCompressed) {
  for (const std::vector<std::string>& program : {std::vector<std::string>{"zstd", "-q"},
                                                  {"zstd", "-q", "-9", "--no-check"},
                                                  {"gzip"},
                                                  {"gzip", "-1", "-n"}}) {
    SCOPED_TRACE(program.front() + " " + program.back());
    std::string compressed;
    std::string text;
    std::mt19937 random(5);
    for (std::size_t i = 0; i < 5; ++i) {
      std::string part;
      while (part.size() < mebibyte + i * 1000) part += std::to_string(random()) + "\n";
      compressed += test::compress_with(program, part);
      text += part;
    }
    expect_sound(compressed, text, 5);
  }
}

TEST_F(RestartPoints, AreNotMadeForSmallPieces) {
  std::string compressed_gz;
  std::string compressed_zst;
  std::string text;
  for (unsigned i = 0; i < 300; ++i) {
    const std::string part = seeded_text(10'000, i);
    compressed_gz += test::gzip(part);
    compressed_zst += test::zstd(part);
    text += part;
  }
  expect_sound(compressed_gz, text, 3);
  expect_sound(compressed_zst, text, 3);
}

TEST_F(RestartPoints, AreNoneForOnePiece) {
  const std::string text = seeded_text(3 * mebibyte, 1);
  expect_sound(test::zstd(text), text, 0);
  expect_sound(test::gzip(text), text, 0);
  expect_sound(test::zstd(text) + test::zstd(""), text, 0);
  expect_sound(test::gzip(text) + test::gzip(""), text, 0);
  EXPECT_TRUE(points(text).empty());
  EXPECT_TRUE(points("").empty());
}

// There are no restart points if a frame does not state its size. `zstd < file` makes such frames,
// because it does not know the size when it writes the header.
TEST_F(RestartPoints, AreNoneWhereAFrameDoesNotSayItsSize) {
  const std::string text = seeded_text(2 * mebibyte, 1);
  const std::string compressed = test::compress_with({"zstd", "-q", "--no-content-size"}, text);
  expect_sound(test::zstd(text) + compressed, text + text, 0);
}

// There are no restart points for a frame that claims to be huge: its header promises 2^64 - 1
// bytes, or slightly more than the search accepts.
TEST_F(RestartPoints, AreNoneForAFrameThatSaysToBeHuge) {
  const std::string first = test::zstd(seeded_text(2 * mebibyte, 1));
  for (const std::string_view size : {std::string_view("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF", 8),
                                      std::string_view("\x01\0\0\x40\0\0\0\0", 8)}) {
    const std::string frame =
        "\x28\xB5\x2F\xFD\xE0" + std::string(size) + std::string("\x01\0\0", 3);
    EXPECT_TRUE(points(first + frame).empty());
    EXPECT_TRUE(points(frame + first).empty());
  }
}

// The search skips zeros after the last gzip member, as gzip does. The member itself can end in
// zeros too.
TEST_F(RestartPoints, PassTheZerosBehindTheLastGzipMember) {
  const std::string a = seeded_text(2 * mebibyte, 1);
  for (const std::size_t last : {std::size_t{0}, std::size_t{255}, std::size_t{65'536}, mebibyte}) {
    for (const std::size_t zeros : {0U, 1U, 2U, 3U, 4U, 5U, 512U, 1'200'000U}) {
      SCOPED_TRACE(testing::Message() << zeros << " zeros behind a member of " << last);
      const std::string b = seeded_text(last, 2);
      std::string compressed = test::gzip(a);
      compressed += test::gzip(a);
      compressed += test::gzip(b);
      compressed.append(zeros, '\0');
      std::string text = a;
      text += a;
      text += b;
      expect_sound(compressed, text, last == 0 ? 2 : 3);
    }
  }
}

// The search reads the file in windows. It finds restart points wherever a window ends.
TEST_F(RestartPoints, AreFoundWhereverAWindowEnds) {
  const std::string text = seeded_text(mebibyte, 1);
  const std::string second = test::gzip(text);
  const std::string bare = test::gzip(text);
  for (std::size_t before_edge = 0; before_edge < 24; ++before_edge) {
    const std::size_t wanted = mebibyte + 20 + 12 - before_edge;
    const std::string first =
        test::gzip(text, {.comment = std::string(wanted - bare.size() - 1, 'c')});
    ASSERT_EQ(first.size(), wanted);
    const auto found = points(first + second);
    ASSERT_EQ(found.size(), 3U) << before_edge;
    EXPECT_EQ(found[1], (restart_point{wanted, mebibyte}));
  }
}

// No restart point is found inside a member, even if data there looks like the header of a member.
TEST_F(RestartPoints, AreNotFoundInTheMiddleOfAMember) {
  std::string noise(200'000, '\0');
  std::mt19937 random(3);
  for (char& each : noise) each = static_cast<char>(random());
  for (std::size_t at = 50; at + 20 < noise.size(); at += 1000) {
    // looks like the size at the end of a member, followed by the header of the next member
    noise.replace(at, 14, std::string("\0\0\x02\0\x1F\x8B\x08\0\0\0\0\0\0\xFF", 14));
  }
  const std::string text = seeded_text(mebibyte, 1);
  expect_sound(test::gzip(noise + text) + test::gzip(noise + text), noise + text + noise + text, 2);
}

// A file that is truncated at any of many places is not mistaken for a whole file.
TEST_F(RestartPoints, HideNoTruncation) {
  const std::string a = seeded_text(mebibyte, 1);
  const std::string gz = test::gzip(a) + test::gzip(a);
  const std::string zst = test::zstd(a) + test::zstd_skippable("s") + test::zstd(a);
  for (const std::string& whole : {gz, zst}) {
    const std::size_t step = whole.size() / 120 + 1;
    for (std::size_t size = 12; size<whole.size(); size += size + 30> whole.size() ? 1 : step) {
      (void)expect_as_from_front(whole.substr(0, size));
    }
  }
}

TEST_F(RestartPoints, HideNoDamage) {
  const std::string a = seeded_text(mebibyte, 1);
  const std::string gz = test::gzip(a) + test::gzip(a);
  const std::string zst = test::zstd(a) + test::zstd_skippable("s") + test::zstd(a);
  const std::string bgz = [] {
    std::string compressed;
    for (unsigned i = 0; i < 40; ++i) compressed += bgzf(seeded_text(60'000, i));
    return compressed;
  }();
  std::mt19937 random(4);
  for (const std::string& whole : {gz, zst, bgz}) {
    std::size_t refused = 0;
    for (int round = 0; round < 150; ++round) {
      std::string damaged = whole;
      // Damage in headers and trailers is more likely to mislead the search.
      const bool near_middle = round % 2 == 0;
      const std::size_t at =
          near_middle ? whole.size() / 2 - 24 + random() % 48 : random() % (whole.size() - 12) + 12;
      damaged[at] = static_cast<char>(damaged[at] ^ (1 << random() % 8));
      refused += expect_as_from_front(damaged) ? 1U : 0U;
    }
    EXPECT_GT(refused, 100U);
  }
}

// A restart point must be a place where one unit (a gzip member or zstd frame) ends and the next
// begins. The text from a wrong restart point on may be valid by itself. Then only reading the
// piece before that point can find the mistake.
TEST_F(RestartPoints, ArePlacesWhereOneUnitEndsAndTheNextBegins) {
  const std::string a = seeded_text(mebibyte, 1);
  for (const auto& compress : {+[](std::string_view text) { return test::gzip(text); },
                               +[](std::string_view text) { return test::zstd(text); }}) {
    const std::string one = compress(a);
    std::string three = one;
    three += one;
    three += one;
    const input_file file = write(three);
    const auto read = [&](const std::vector<restart_point>& later) {
      const auto source = open_input_at(file, {}, later);
      return test::read_source(*source, later.front().text_offset);
    };
    const std::uint64_t size = one.size();
    EXPECT_EQ(read({{size, mebibyte}}), a);
    EXPECT_EQ(read({{2 * size, 2 * mebibyte}}), a + a);
    EXPECT_THROW(read({{2 * size, mebibyte}}), format_error) << "a whole unit is left out";
    EXPECT_THROW(read({{size, mebibyte - 1}}), format_error) << "its text is longer";
    EXPECT_THROW(read({{size, mebibyte + 1}}), format_error) << "its text is shorter";
    EXPECT_THROW(read({{size - 1, mebibyte}}), format_error) << "it ends later";
    EXPECT_THROW(read({{size + 1, mebibyte}}), format_error) << "it ends earlier";
    EXPECT_THROW(read({{3 * size, 3 * mebibyte + 1}}), format_error) << "the file ends earlier";
  }
}

TEST_F(RestartPoints, OfAPlainFileAreAllItsBytes) {
  const input_file file = write("0123456789");
  for (const std::uint64_t at : {0U, 1U, 9U, 10U, 11U}) {
    EXPECT_EQ(test::read_source(*open_input_at(file, {at, at})),
              std::string("0123456789").substr(std::min<std::size_t>(at, 10)));
  }
}

}  // namespace
}  // namespace millrace::preprocess
