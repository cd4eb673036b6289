// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/json_node.hpp"

#include <gtest/gtest.h>

namespace millrace::tokenizer::detail {
namespace {

TEST(ReferenceNumber, IsTheNearestWhereTheStepsAreExact) {
  EXPECT_EQ(reference_number("0"), 0.0);
  EXPECT_EQ(reference_number("-12.25"), -12.25);
  EXPECT_EQ(reference_number("5E3"), 5000.0);
  EXPECT_EQ(reference_number("25e-1"), 2.5);
  EXPECT_EQ(reference_number("0e999999999999"), 0.0);
  EXPECT_EQ(reference_number("1e-999999999999"), 0.0);
}

// The reference rounds twice, so it does not read these numbers as the nearest doubles.
TEST(ReferenceNumber, IsRoundedTwiceWhereTheReferenceDoes) {
  EXPECT_NE(reference_number("-9.478274870593493"), -9.478274870593493);
  EXPECT_EQ(reference_number("-9.478274870593493"), -(9478274870593493.0 / 1e15));
  EXPECT_EQ(reference_number("1.23456789012345678901234567890"), 12345678901234567890.0 / 1e19)
      << "digits that do not fit are dropped";
  EXPECT_EQ(reference_number("123456789012345678901234.5"), 12345678901234567890.0 * 1e4);
}

}  // namespace
}  // namespace millrace::tokenizer::detail
