// SPDX-License-Identifier: Apache-2.0
#include "output/cut_points.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include <millrace/error.hpp>
#include <millrace/formats/detail/crc32c.hpp>

#include "support/paths.hpp"
#include "support/seed.hpp"

namespace millrace::preprocess {
namespace {

using generator = std::mt19937_64;

/// Points as a task meets them, with rare jumps of any size.
std::vector<cut_point> random_points(generator& random, std::size_t keys, std::int64_t documents) {
  std::vector<cut_point> points;
  cut_point point;
  point.tokens.resize(keys);
  const auto grow = [&](auto& count) {
    count += static_cast<std::remove_reference_t<decltype(count)>>(
        random() % 100 == 0 ? random() >> (8 + random() % 50) : random() % 300);
  };
  for (std::int64_t i = 0; i <= documents; ++i) {
    point.counts.documents = i;
    point.counts.lines += 1;
    grow(point.counts.text_bytes);
    if (random() % 30 == 0) {
      ++point.input;
      point.input_bytes = point.input_lines = point.begin = 0;
    }
    grow(point.input_bytes);
    ++point.input_lines;
    point.input_crc32c = static_cast<std::uint32_t>(random());
    point.begin = point.input_bytes;
    for (auto* rare :
         {&point.counts.blank_lines, &point.counts.not_sampled, &point.counts.lone_surrogates,
          &point.counts.special_tokens, &point.counts.overlong, &point.counts.truncated}) {
      if (random() % 10 == 0) grow(*rare);
    }
    for (auto& bad : point.counts.bad_records) {
      if (random() % 20 == 0) ++bad;
    }
    for (auto& tokens : point.tokens) grow(tokens);
    points.push_back(point);
  }
  return points;
}

class CutPoints : public testing::Test {
 protected:
  void write(const std::vector<cut_point>& points, std::size_t keys, std::size_t key) {
    cut_writer writer(path_, keys, key);
    for (const cut_point& point : points) writer.append(point);
    writer.finish();
    writer.file().commit();
  }
  std::vector<cut_point> read() const {
    const cut_reader reader(path_);
    std::vector<cut_point> points;
    reader.for_each([&](const cut_point& point) { points.push_back(point); });
    EXPECT_EQ(reader.documents() + 1, std::ssize(points));
    return points;
  }

  test::temp_folder folder_;
  std::filesystem::path path_ = folder_ / "p.cuts";
  generator random_{test::seed(91)};
};

TEST_F(CutPoints, AreReadAsTheyWereWritten) {
  for (const std::size_t keys : {1U, 2U, 50U}) {
    for (const std::int64_t documents : {0, 1, 500}) {
      const auto points = random_points(random_, keys, documents);
      write(points, keys, keys - 1);
      EXPECT_EQ(read(), points);
      const cut_reader reader(path_);
      EXPECT_EQ(reader.keys(), keys);
      EXPECT_EQ(reader.key(), keys - 1);
    }
  }
}

TEST_F(CutPoints, AreThoseOfTheGoldenFile) {
  const std::string text = "{\"text\": \"abc\"}\n\n{\"text\": \"de\"}\n";
  const auto crc32c = [&](std::size_t size) {
    return formats::crc32c(std::as_bytes(std::span(text)).first(size));
  };
  std::vector<cut_point> points(3);
  for (std::size_t i = 0; i < points.size(); ++i) {
    points[i].counts.documents = static_cast<std::int64_t>(i);
    points[i].tokens = {0};
  }
  points[1].counts.lines = 2;
  points[1].counts.blank_lines = points[2].counts.blank_lines = 1;
  points[1].counts.text_bytes = points[1].tokens[0] = 3;
  points[1].input_bytes = points[1].begin = 17;
  points[1].input_lines = 2;
  points[1].input_crc32c = crc32c(17);
  points[2].counts.lines = 3;
  points[2].counts.text_bytes = points[2].tokens[0] = 5;
  points[2].input_bytes = points[2].begin = text.size();
  points[2].input_lines = 3;
  points[2].input_crc32c = crc32c(text.size());
  write(points, 1, 0);
  const std::string golden = test::read_text(test::golden("sidecars/two_documents.cuts"));
  EXPECT_TRUE(test::read_text(path_) == golden);
  test::write_text(path_, golden);
  EXPECT_EQ(read(), points);
}

// A resumed run goes on after the documents of the last saved state, and drops what follows.
TEST_F(CutPoints, GoOnAfterAnyDocument) {
  const auto points = random_points(random_, 2, 60);
  write(points, 2, 1);
  const std::string wanted = test::read_text(path_);
  for (std::size_t kept = 0; kept < points.size(); kept += 7) {
    SCOPED_TRACE(kept);
    {
      cut_writer writer(path_, 2, 1);
      for (std::size_t i = 0; i < std::min(kept + 5, points.size()); ++i) writer.append(points[i]);
      kept % 2 == 0 ? writer.finish() : writer.flush();
      writer.file().keep();
    }
    cut_writer writer(path_, 2, 1, static_cast<std::int64_t>(kept));
    for (std::size_t i = kept; i < points.size(); ++i) writer.append(points[i]);
    writer.finish();
    writer.file().commit();
    EXPECT_TRUE(test::read_text(path_) == wanted);
  }
}

TEST_F(CutPoints, AreNotResumedWithoutTheirFile) {
  {
    cut_writer writer(path_, 1, 0);
    cut_point point;
    point.tokens = {5};
    writer.append(point);
    writer.file().keep();
  }
  EXPECT_THROW(cut_writer(path_, 1, 0, 2), config_error);
  EXPECT_THROW(cut_writer(path_, 2, 0, 1), config_error);
}

// The counts of a task never fall. These files have a good checksum.
TEST_F(CutPoints, NoticeCountsThatFall) {
  const auto refusal = [&](const std::function<void(cut_point&)>& change) {
    auto points = random_points(random_, 2, 3);
    points[2] = points[1];
    points[2].counts.documents = 2;
    change(points[2]);
    write(points, 2, 0);
    try {
      (void)read();
    } catch (const format_error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto refused = testing::HasSubstr("p.cuts: a count falls, or is 2^63 or more");
  EXPECT_THAT(refusal([](cut_point& point) { --point.counts.lines; }), refused);
  EXPECT_THAT(refusal([](cut_point& point) { point.counts.bad_records[8] = -1; }), refused);
  EXPECT_THAT(refusal([](cut_point& point) { point.tokens[1] = -1; }), refused);
  EXPECT_THAT(refusal([](cut_point& point) { --point.input; }), refused);
  EXPECT_EQ(refusal([](cut_point& point) { point.input_bytes = point.begin = 0; }), "");
}

TEST_F(CutPoints, NoticeEveryDamagedByte) {
  write(random_points(random_, 2, 20), 2, 0);
  const std::string good = test::read_text(path_);
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1 << random_() % 8);
    test::write_text(path_, bad);
    EXPECT_THROW(cut_reader reader(path_), format_error) << i;
    test::write_text(path_, good.substr(0, i));
    EXPECT_THROW(cut_reader reader(path_), format_error) << i;
  }
  test::write_text(path_, good + "x");
  EXPECT_THROW(cut_reader reader(path_), format_error);
}

}  // namespace
}  // namespace millrace::preprocess
