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

// Lengths on both sides of the border from which on a map holds them.
TEST(LengthStatistics, SelectsAsSortingDoes) {
  std::mt19937_64 random(test::seed(20240611));
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const auto count = static_cast<std::size_t>(1 + random() % 40);
    const std::uint64_t limit = (std::uint64_t{1} << (random() % 30)) + random() % 3;
    std::vector<std::int64_t> lengths(count);
    length_counts counts;
    length_counts parts;
    for (auto& length : lengths) {
      length = static_cast<std::int64_t>(random() % (limit + 1));
      if (round % 2 == 0) counts.add(length);
      if (round % 2 == 1) (random() % 2 == 0 ? counts : parts).add(length);
    }
    counts += parts;
    std::sort(lengths.begin(), lengths.end());
    ASSERT_EQ(counts.count(), std::ssize(lengths));
    for (std::size_t k = 0; k < count; ++k) {
      ASSERT_EQ(counts.nth(static_cast<std::int64_t>(k)), lengths[k]);
    }
    EXPECT_EQ(counts.sum(), std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0}));
  }
}

}  // namespace
}  // namespace millrace::dataset
