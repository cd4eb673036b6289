// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/neighbour_statistics.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;

class NeighbourStatistics : public testing::Test {
 protected:
  neighbour_statistics of(const std::vector<std::size_t>& lengths) {
    test::documents_of<std::uint8_t> documents;
    for (const std::size_t length : lengths) {
      documents.push_back({std::vector<std::uint8_t>(length)});
    }
    test::write_dataset<std::uint8_t>(folder_ / "data", documents);
    return look_at_neighbours(indexed_dataset(folder_ / "data"), nullptr);
  }
  test::temp_folder folder_;
};

TEST_F(NeighbourStatistics, PassShuffledData) {
  std::mt19937_64 random(1);
  for (const std::size_t count : {std::size_t{1000}, std::size_t{5000}, std::size_t{400'000}}) {
    std::vector<std::size_t> lengths(count);
    for (auto& length : lengths) length = random() % 60;
    const auto found = of(lengths);
    EXPECT_EQ(found.warning(), "");
    EXPECT_LT(std::abs(*found.length_correlation), 0.1);
    EXPECT_LE(found.documents, 256 * 1024);
  }
}

TEST_F(NeighbourStatistics, WarnOfSortedData) {
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < 3000; ++i) lengths.push_back(i / 50);
  EXPECT_THAT(of(lengths).warning(), HasSubstr("have similar lengths (correlation 0.9"));
}

TEST_F(NeighbourStatistics, SayNothingOfLittle) {
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < 900; ++i) lengths.push_back(i);
  EXPECT_EQ(of(lengths).warning(), "");
  EXPECT_EQ(of({}).length_correlation, std::nullopt);
  EXPECT_EQ(of({3}).length_correlation, std::nullopt);
  EXPECT_EQ(of(std::vector<std::size_t>(2000, 7)).warning(), "");
}

TEST_F(NeighbourStatistics, WarnOfInputsOneAfterTheOther) {
  neighbour_statistics found{.documents = 5000,
                             .length_correlation = 0.01,
                             .same_input = 0.99,
                             .same_input_shuffled = 0.25};
  EXPECT_THAT(
      found.warning(),
      HasSubstr(
          "99 % of neighboring documents come from the same input, 25 % if shuffled; for orders"));
  found.same_input = 0.27;
  EXPECT_EQ(found.warning(), "");
}

}  // namespace
}  // namespace millrace::dataset
