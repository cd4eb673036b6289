// SPDX-License-Identifier: Apache-2.0
#include "split/instruction_set.hpp"

#include <gtest/gtest.h>

namespace millrace::tokenizer::detail {
namespace {

TEST(InstructionSet, RunsTheBestAndWhatIsNarrower) {
  EXPECT_TRUE(can_run(best_instruction_set()));
  EXPECT_TRUE(can_run(instruction_set::portable));
  if (can_run(instruction_set::avx512)) {
    EXPECT_TRUE(can_run(instruction_set::avx2));
    EXPECT_EQ(best_instruction_set(), instruction_set::avx512);
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
