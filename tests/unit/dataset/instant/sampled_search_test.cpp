// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/instant/sampled_search.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace millrace::dataset {
namespace {

std::int64_t naive(const std::vector<std::int64_t>& column, std::int64_t target) {
  return std::upper_bound(column.begin(), column.end(), target) - column.begin() - 1;
}

void expect_as_naive(const std::vector<std::int64_t>& column, std::mt19937_64& random) {
  const sampled_search search(static_cast<std::int64_t>(column.size()));
  const auto value = [&](std::int64_t i) { return column.at(static_cast<std::size_t>(i)); };
  std::set<std::int64_t> targets = {-1, 0, 1};
  for (int i = 0; i < 500 && !column.empty(); ++i) {
    const std::int64_t entry = column[random() % column.size()];
    targets.insert({entry - 1, entry, entry + 1});
  }
  if (!column.empty()) targets.insert({column.back(), column.back() + 1, column.back() + 1000});
  for (const std::int64_t target : targets) {
    ASSERT_EQ(search.last_not_above(target, value), naive(column, target)) << target;
  }
}

TEST(SampledSearch, FindsWhatAPlainSearchFinds) {
  std::mt19937_64 random(1);
  for (const std::size_t count :
       std::vector<std::size_t>{0, 1, 2, 8191, 8192, 8193, 50000, 300000}) {
    SCOPED_TRACE(count);
    std::vector<std::int64_t> even;
    std::vector<std::int64_t> uneven;
    std::vector<std::int64_t> stairs;
    std::int64_t sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      even.push_back(static_cast<std::int64_t>(2048 * i));
      uneven.push_back(sum);
      stairs.push_back(static_cast<std::int64_t>(i / 70'000 * 1000));
      sum += static_cast<std::int64_t>(random() % 7 == 0 ? random() % 100'000 : random() % 3);
    }
    expect_as_naive(even, random);
    expect_as_naive(uneven, random);
    expect_as_naive(stairs, random);
  }
}

TEST(SampledSearch, EndsInsideAColumnThatDoesNotAscend) {
  std::mt19937_64 random(2);
  std::vector<std::int64_t> column(100'000);
  for (auto& entry : column) entry = static_cast<std::int64_t>(random());
  const sampled_search search(100'000);
  const auto value = [&](std::int64_t i) { return column.at(static_cast<std::size_t>(i)); };
  for (int i = 0; i < 10'000; ++i) {
    const std::int64_t found = search.last_not_above(static_cast<std::int64_t>(random()), value);
    ASSERT_TRUE(-1 <= found && found < 100'000);
  }
}

// A search must not read more entries of a file than the header of `sampled_search` promises.
TEST(SampledSearch, LooksAtFewEntries) {
  constexpr std::int64_t count = 1'000'000'000;
  std::set<std::int64_t> pages;
  const auto value = [&](std::int64_t i) {
    pages.insert(i / 512);
    return i * 1000 +
           static_cast<std::int64_t>(static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15 >>
                                     50);  // values are up to 16 entries out of order
  };
  const sampled_search search(count);
  std::mt19937_64 random(3);
  for (int i = 0; i < 200'000; ++i) {  // fill the top level
    (void)search.last_not_above(static_cast<std::int64_t>(random() % (count * 1000)), value);
  }
  std::size_t most = 0;
  std::size_t sum = 0;
  for (int i = 0; i < 1000; ++i) {
    pages.clear();
    (void)search.last_not_above(static_cast<std::int64_t>(random() % (count * 1000)), value);
    most = std::max(most, pages.size());
    sum += pages.size();
  }
  EXPECT_LE(sum, 6000U);
  EXPECT_LE(most, 12U);
}

}  // namespace
}  // namespace millrace::dataset
