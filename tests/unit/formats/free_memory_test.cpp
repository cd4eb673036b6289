// SPDX-License-Identifier: Apache-2.0
#include <millrace/formats/detail/free_memory.hpp>

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace millrace::formats {
namespace {

TEST(FreeMemory, FreesWhatAContainerHas) {
  std::vector<int> numbers(1000);
  std::string text(1000, 'a');
  free_memory(numbers);
  free_memory(text);
  EXPECT_EQ(numbers.capacity(), 0U);
  EXPECT_EQ(text.capacity(), std::string().capacity());
}

}  // namespace
}  // namespace millrace::formats
