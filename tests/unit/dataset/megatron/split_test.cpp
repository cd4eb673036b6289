// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/split.hpp>
#include <millrace/error.hpp>

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::dataset {
namespace {

using testing::HasSubstr;

std::string compact(std::string_view text) {
  std::string out;
  for (const char c : split_matrix(text).json().dump()) {
    if (c != ' ' && c != '\n') out += c;
  }
  return out;
}

std::string refusal(std::string_view text) {
  try {
    const split_matrix matrix(text);
  } catch (const config_error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(SplitMatrix, SaysWhatMegatronSays) {
  EXPECT_EQ(compact("969, 30, 1"), "[[0,0.969],[0.969,0.999],[0.999,1.0]]");
  EXPECT_EQ(compact("0.9;0.05;0.05"),
            "[[0,0.9],[0.9,0.9500000000000001],[0.9500000000000001,1.0]]");
  EXPECT_EQ(compact("100,0,0"), "[[0,1.0],null,null]");
  EXPECT_EQ(compact("0,1,1"), "[null,[0.0,0.5],[0.5,1.0]]");
  EXPECT_EQ(compact("1"), "[[0,1.0],null,null]");
  EXPECT_EQ(compact("1e-3"), "[[0,0.25],[0.25,1.0],null]");  // read as the numbers 1 and 3
  EXPECT_EQ(compact("-1 of 5."), "[[0,0.16666666666666666],[0.16666666666666666,1.0],null]");
}

TEST(SplitMatrix, RefusesWhatIsNoSplit) {
  EXPECT_THAT(refusal("1.2.3"), HasSubstr("'1.2.3' is not a number"));
  EXPECT_THAT(refusal("1,.,3"), HasSubstr("'.' is not a number"));
  EXPECT_THAT(refusal("1,2,3,4"), HasSubstr("has 4 numbers"));
  EXPECT_THAT(refusal("0,0,0"), HasSubstr("adds up to 0.0"));
  EXPECT_THAT(refusal("all"), HasSubstr("at least one"));
  EXPECT_THAT(refusal(std::string(400, '9')), HasSubstr("is not a number"));
  const std::string large = "1" + std::string(308, '0');
  EXPECT_THAT(refusal(large + "," + large), HasSubstr("adds up to Infinity"));
}

// Halves are rounded to even, as in Python: round(0.5) is 0 and round(1.5) is 2.
TEST(SplitMatrix, RoundsFromTheMiddleToTheEven) {
  const split_matrix halves("1,1");
  EXPECT_EQ(halves.of(split_part::train, 1), (sequence_range{0, 0}));
  EXPECT_EQ(halves.of(split_part::valid, 1), (sequence_range{0, 1}));
  EXPECT_EQ(halves.of(split_part::train, 3), (sequence_range{0, 2}));
  EXPECT_EQ(halves.of(split_part::valid, 3), (sequence_range{2, 3}));
  EXPECT_EQ(halves.of(split_part::test, 3), (sequence_range{}));
  EXPECT_EQ(detail::round_half_even(2.5), 2);
  EXPECT_EQ(detail::round_half_even(3.5), 4);
  EXPECT_EQ(detail::round_half_even(0x1.fffffffffffffp-2), 0);
}

TEST(SplitMatrix, LeavesNothingOutAndTakesNothingTwice) {
  for (const char* text : {"969, 30, 1", "0.9;0.05;0.05", "70,20,10", "1,1,1", "0,3,7", "98,2"}) {
    const split_matrix matrix(text);
    for (std::int64_t sequences = 0; sequences < 3000; sequences += sequences / 50 + 1) {
      std::int64_t next = 0;
      for (const split_part part : split_parts) {
        if (!matrix.has(part)) continue;
        EXPECT_EQ(matrix.of(part, sequences).first, next) << text << " of " << sequences;
        next = matrix.of(part, sequences).last;
      }
      EXPECT_EQ(next, sequences) << text;
    }
  }
}

}  // namespace
}  // namespace millrace::dataset
