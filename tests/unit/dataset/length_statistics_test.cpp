// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/length_statistics.hpp>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

TEST(LengthStatistics, DescribeSequencesAndDocuments) {
  const test::temp_folder folder;
  test::write_dataset<std::uint16_t>(folder / "data", {{}, {{1, 2, 3}, {}}, {{4}}, {{5, 6}}});
  const indexed_dataset data(folder / "data");

  const length_statistics sequences = sequence_lengths(data);
  EXPECT_EQ(sequences.count, 4);
  EXPECT_EQ(sequences.empty, 1);
  EXPECT_EQ(sequences.min, 0);
  EXPECT_EQ(sequences.median, 1.5);
  EXPECT_EQ(sequences.mean, 1.5);
  EXPECT_EQ(sequences.max, 3);

  const length_statistics documents = document_lengths(data);
  EXPECT_EQ(documents.count, 4);
  EXPECT_EQ(documents.empty, 1);
  EXPECT_EQ(documents.median, 1.5);
  EXPECT_EQ(documents.max, 3);
}

TEST(LengthStatistics, AreZeroForNothing) {
  const test::temp_folder folder;
  test::write_dataset<std::uint16_t>(folder / "data", {});
  const indexed_dataset data(folder / "data");
  EXPECT_EQ(sequence_lengths(data).count, 0);
  EXPECT_EQ(document_lengths(data).count, 0);
  EXPECT_EQ(document_lengths(data).max, 0);
}

// Selection gives the same value as sorting. The test draws values on both sides of each border
// between the 16-bit digits that the selection uses.
TEST(LengthStatistics, SelectsAsSortingDoes) {
  std::mt19937_64 random(test::seed(20240611));
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const auto count = static_cast<std::size_t>(1 + random() % 40);
    const std::uint64_t limit = (std::uint64_t{1} << (random() % 50)) + random() % 3;
    std::vector<std::int64_t> values(count);
    for (auto& value : values) value = static_cast<std::int64_t>(random() % (limit + 1));
    auto sorted = values;
    std::sort(sorted.begin(), sorted.end());
    const auto value = [&](std::int64_t i) { return values[static_cast<std::size_t>(i)]; };
    for (std::size_t k = 0; k < count; ++k) {
      ASSERT_EQ(detail::nth_smallest(static_cast<std::int64_t>(count), value,
                                     static_cast<std::int64_t>(k), sorted.back()),
                sorted[k]);
    }
  }
}

}  // namespace
}  // namespace millrace::dataset
