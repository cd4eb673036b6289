// SPDX-License-Identifier: Apache-2.0
#include "json/wide_integers.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace millrace::tokenizer::detail {
namespace {

std::string changed(const char* json) {
  return with_floats_for_wide_integers(json);
}

TEST(WideIntegers, BecomeFloatsOfTheirSize) {
  EXPECT_EQ(changed("[1000000000000000019884624838656]"), "[1.00000000000000001988462483e30]");
  EXPECT_EQ(changed("-9999999999999999999"), "-9.99999999999999e18");
  const std::string digits = "1234567890123456789012345678901234567890";
  EXPECT_EQ(std::strtod(changed(digits.c_str()).c_str(), nullptr),
            std::strtod(digits.c_str(), nullptr));
  EXPECT_EQ(changed(digits.c_str()).size(), digits.size());
}

TEST(WideIntegers, LeaveAllElseAlone) {
  for (const char* json : {
           "[1, 123456789012345678, \"1000000000000000000000\"]",  // 18 digits, and a string
           R"({"a\"1000000000000000000000":2})",
           R"("\\")",
           "0.1000000000000000000000",
           "1000000000000000000000.5",
           "1000000000000000000000e5",
           "1e+1000000000000000000000",
           "00000000000000000000001",
           "\"1000000000000000000000",  // truncated
           "\"\\",
           "",
       }) {
    EXPECT_EQ(changed(json), json);
  }
}

}  // namespace
}  // namespace millrace::tokenizer::detail
