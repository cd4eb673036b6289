// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/io/read_plan.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::loader {
namespace {

struct expected_read {
  std::int64_t file;
  std::uint64_t offset;
  std::uint64_t bytes;
  std::size_t parts;
};

class ReadPlan : public testing::Test {
 protected:
  void expect(const std::vector<file_range>& ranges, const std::vector<expected_read>& reads) {
    std::vector<read_request> requests;
    for (const file_range& r : ranges) requests.push_back({r, memory_.data()});
    plan_.make(requests);
    ASSERT_EQ(plan_.reads().size(), reads.size());
    for (std::size_t i = 0; i < reads.size(); ++i) {
      SCOPED_TRACE(i);
      const planned_read& found = plan_.reads()[i];
      EXPECT_EQ(found.file, reads[i].file);
      EXPECT_EQ(found.offset, reads[i].offset);
      EXPECT_EQ(found.bytes, reads[i].bytes);
      EXPECT_EQ(found.parts, reads[i].parts);
      std::size_t of_parts = 0;
      for (const ::iovec& part : plan_.parts_of(found)) of_parts += part.iov_len;
      EXPECT_EQ(of_parts, found.bytes);
    }
  }

  std::vector<std::byte> memory_ = std::vector<std::byte>(1);
  read_plan plan_;
};

TEST_F(ReadPlan, SortsByFileAndOffsetAndLeavesOutWhatIsEmpty) {
  expect({{1, 0, 10}, {0, 50'000, 10}, {0, 7, 0}, {0, 0, 10}},
         {{0, 0, 10, 1}, {0, 50'000, 10, 1}, {1, 0, 10, 1}});
  expect({}, {});
}

TEST_F(ReadPlan, JoinsNeighboursAndClosesSmallGaps) {
  expect({{0, 0, 100}, {0, 100, 50}}, {{0, 0, 150, 2}});
  expect({{0, 0, 100}, {0, 100 + read_plan::most_gap, 50}}, {{0, 0, 150 + read_plan::most_gap, 3}});
  expect({{0, 0, 100}, {0, 101 + read_plan::most_gap, 50}},
         {{0, 0, 100, 1}, {0, 101 + read_plan::most_gap, 50, 1}});
  expect({{0, 0, 100}, {1, 100, 50}}, {{0, 0, 100, 1}, {1, 100, 50, 1}});
}

// Each read has only one destination, so bytes that are requested twice must be read twice.
TEST_F(ReadPlan, DoesNotJoinWhatOverlaps) {
  expect({{0, 0, 100}, {0, 0, 100}, {0, 50, 100}},
         {{0, 0, 100, 1}, {0, 0, 100, 1}, {0, 50, 100, 1}});
}

TEST_F(ReadPlan, CutsWhatIsLong) {
  constexpr std::uint64_t most = read_plan::most_read;
  expect({{0, 10, 2 * most + 5}},
         {{0, 10, most, 1}, {0, 10 + most, most, 1}, {0, 10 + 2 * most, 5, 1}});
}

TEST_F(ReadPlan, NoReadHasMorePartsThanTheKernelTakes) {
  std::vector<file_range> ranges;
  for (std::uint64_t i = 0; i < 5000; ++i) ranges.push_back({0, i * 20, 10});
  std::vector<read_request> requests;
  for (const file_range& r : ranges) requests.push_back({r, memory_.data()});
  plan_.make(requests);
  EXPECT_GE(plan_.reads().size(), 9u);
  for (const planned_read& r : plan_.reads()) EXPECT_LE(r.parts, std::size_t{IOV_MAX});
}

TEST(Coalesce, JoinsWhatOverlapsOrLiesClose) {
  const std::vector<file_range> ranges{{1, 0, 5},   {0, 100, 50}, {0, 0, 100}, {0, 120, 10},
                                       {0, 160, 1}, {0, 9000, 0}, {0, 500, 10}};
  std::vector<file_range> out;
  coalesce(ranges, 10, out);
  EXPECT_EQ(out, (std::vector<file_range>{{0, 0, 161}, {0, 500, 10}, {1, 0, 5}}));
  coalesce({}, 10, out);
  EXPECT_TRUE(out.empty());
}

}  // namespace
}  // namespace millrace::loader
