// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/instant/source_pool.hpp>

#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

class SourcePool : public testing::Test {
 protected:
  /// Dataset i has i + 1 tokens.
  std::vector<std::filesystem::path> stored(std::size_t count) {
    std::vector<std::filesystem::path> prefixes;
    for (std::size_t i = 0; i < count; ++i) {
      prefixes.push_back(folder_ / std::to_string(i));
      test::write_dataset<std::uint8_t>(prefixes.back(), {{std::vector<std::uint8_t>(i + 1)}});
    }
    return prefixes;
  }
  /// Returns the number of lines in /proc/self/maps that name a file in the folder.
  int maps() const {
    std::ifstream in("/proc/self/maps");
    int count = 0;
    for (std::string line; std::getline(in, line);) {
      count += line.find(folder_.path().string()) != line.npos;
    }
    return count;
  }
  test::temp_folder folder_{test::quick_folder()};
};

TEST_F(SourcePool, OpensNothingBeforeItIsTouched) {
  source_pool pool({folder_ / "absent"});
  EXPECT_EQ(pool.open_count(), 0U);
  EXPECT_THROW((void)pool.get(0), io_error);
  test::write_dataset<std::uint8_t>(folder_ / "absent", {{{1, 2}}});
  EXPECT_EQ(pool.get(0)->columns().token_count(), 2);  // a failure is not remembered
}

TEST_F(SourcePool, KeepsThoseThatWereAskedForLast) {
  source_pool pool(stored(4), 2);
  const auto first = pool.get(0);
  (void)pool.get(1);
  EXPECT_EQ(pool.get(0), first);
  (void)pool.get(2);  // closes 1
  EXPECT_EQ(pool.get(0), first);
  (void)pool.get(3);  // closes 2
  EXPECT_EQ(pool.open_count(), 2U);
  EXPECT_EQ(pool.get(0), first);
  (void)pool.get(1);
  (void)pool.get(2);  // closes 0, but `first` still holds it
  EXPECT_EQ(first->columns().token_count(), 1);
  EXPECT_EQ(maps(), 3);
}

TEST_F(SourcePool, HoldsThousandsWithFewMaps) {
  source_pool pool(stored(3000), 16);
  for (int round = 0; round < 2; ++round) {
    for (std::int64_t i = 0; i < 3000; ++i) {
      ASSERT_EQ(pool.get(i)->columns().token_count(), i + 1);
    }
  }
  EXPECT_EQ(pool.open_count(), 16U);
  EXPECT_EQ(maps(), 16);
}

TEST_F(SourcePool, ServesManyThreads) {
  source_pool pool(stored(40), 5);
  std::vector<std::jthread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      for (int i = 0; i < 3000; ++i) {
        const auto source = static_cast<std::int64_t>(random() % 40);
        ASSERT_EQ(pool.get(source)->columns().token_count(), source + 1);
      }
    });
  }
  threads.clear();
  EXPECT_EQ(pool.open_count(), 5U);
}

TEST_F(SourcePool, RefusesToKeepNone) {
  EXPECT_THROW(source_pool({}, 0), config_error);
}

}  // namespace
}  // namespace millrace::dataset
