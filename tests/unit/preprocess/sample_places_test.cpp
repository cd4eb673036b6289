// SPDX-License-Identifier: Apache-2.0
#include "watch/sample_places.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <set>
#include <vector>

namespace millrace::preprocess {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;
using sizes = std::vector<std::uint64_t>;

std::uint64_t size_of(const sample_place& place) {
  std::uint64_t sum = 0;
  for (const sample_range& range : place) sum += range.end - range.begin;
  return sum;
}

TEST(SamplePlaces, AreNoneOfNothing) {
  EXPECT_THAT(sample_places({}, 10, 100), IsEmpty());
  EXPECT_THAT(sample_places(sizes{0, 0}, 10, 100), IsEmpty());
}

TEST(SamplePlaces, LieEvenlyOverAFile) {
  auto places = sample_places(sizes{1000}, 4, 100);
  std::ranges::sort(places, {}, [](const sample_place& place) { return place.front().begin; });
  EXPECT_THAT(places, ElementsAre(sample_place{{0, 75, 175}}, sample_place{{0, 325, 425}},
                                  sample_place{{0, 575, 675}}, sample_place{{0, 825, 925}}));
}

TEST(SamplePlaces, RunOnIntoTheNextFiles) {
  const auto places = sample_places(sizes{0, 45, 0, 3, 52}, 1, 40);
  ASSERT_THAT(places, SizeIs(1));
  EXPECT_THAT(places[0],
              ElementsAre(sample_range{1, 30, 45}, sample_range{3, 0, 3}, sample_range{4, 0, 22}));
}

// The order of the places is scattered, so that the first ones are spread over the files too. If
// time runs out, the first tenth must be enough for an estimate.
TEST(SamplePlaces, JumpAboutSoThatTheFirstAreSpreadToo) {
  const std::uint64_t total = 1'000'000'000;
  const auto places = sample_places(sizes{total}, 192, 1000);
  ASSERT_THAT(places, SizeIs(192));
  std::set<std::uint64_t> tenths;
  for (int i = 0; i < 19; ++i) {
    tenths.insert(places[static_cast<std::size_t>(i)].front().begin / (total / 10));
  }
  EXPECT_THAT(tenths, SizeIs(10));
}

// If the places would overlap, fewer places are returned. All places are inside the files, and no
// two overlap.
TEST(SamplePlaces, NeverMeetAndStayInside) {
  for (const sizes& files :
       {sizes{1}, sizes{99, 1}, sizes{1000}, sizes(300, 7), sizes{5, 12345, 1}}) {
    const std::uint64_t total = std::accumulate(files.begin(), files.end(), std::uint64_t{0});
    for (const std::uint64_t bytes : {1U, 10U, 100U, 100000U}) {
      std::vector<std::set<std::uint64_t>> seen(files.size());
      const auto places = sample_places(files, 192, bytes);
      EXPECT_THAT(places, SizeIs(testing::Le(192)));
      EXPECT_FALSE(places.empty());
      for (const sample_place& place : places) {
        EXPECT_LE(size_of(place), std::min(bytes, total));
        for (const sample_range& range : place) {
          ASSERT_LT(range.file, files.size());
          ASSERT_LT(range.begin, range.end);
          ASSERT_LE(range.end, files[range.file]);
          for (std::uint64_t at = range.begin; at < range.end; ++at) {
            ASSERT_TRUE(total < bytes * places.size() || seen[range.file].insert(at).second) << at;
          }
        }
      }
    }
  }
}

TEST(SamplePlaces, TakeSizesNearTheLargest) {
  const sizes huge = {std::uint64_t{1} << 62, std::uint64_t{1} << 61};
  for (const sample_place& place : sample_places(huge, 192, 1 << 17)) {
    ASSERT_THAT(place, SizeIs(1));
    EXPECT_LE(place[0].end, huge[place[0].file]);
    EXPECT_EQ(place[0].end - place[0].begin, 1U << 17);
  }
}

TEST(SampleFiles, HitLargeFilesMoreOften) {
  const auto files = sample_files(sizes{100, 0, 300}, 64);
  EXPECT_THAT(files, SizeIs(64));
  EXPECT_EQ(std::ranges::count(files, 0U), 16);
  EXPECT_EQ(std::ranges::count(files, 2U), 48);
  EXPECT_THAT(sample_files(sizes{0}, 64), IsEmpty());
}

}  // namespace
}  // namespace millrace::preprocess
