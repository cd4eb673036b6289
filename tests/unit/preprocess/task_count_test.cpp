// SPDX-License-Identifier: Apache-2.0
#include "mpi/task_count.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace millrace::preprocess {
namespace {

std::vector<input_file> files_of(std::size_t count, std::uint64_t bytes_each) {
  return std::vector<input_file>(count, {.path = "a", .size_bytes = bytes_each});
}

TEST(TaskCount, GrowsWithTheBytesOfAllInputsUpToALimit) {
  constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;
  EXPECT_EQ(task_count({}), 1);
  EXPECT_EQ(task_count(files_of(3, 0)), 1);
  EXPECT_EQ(task_count(files_of(1, 63 * mebibyte)), 1);
  EXPECT_EQ(task_count(files_of(4, 16 * mebibyte)), 2);
  EXPECT_EQ(task_count(files_of(1000, 32 * mebibyte)), 1000);
  EXPECT_EQ(task_count(files_of(10, std::uint64_t{1} << 40)), 4096);
}

}  // namespace
}  // namespace millrace::preprocess
