// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/blend_list.hpp>
#include <millrace/error.hpp>

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::ThrowsMessage;

blend_list parse(const std::vector<std::string>& words) {
  return parse_blend_list(words, "--data-path");
}

void expect_list_refused(const std::vector<std::string>& words, const char* why) {
  EXPECT_THAT([&] { return parse(words); }, ThrowsMessage<config_error>(HasSubstr(why)));
}

TEST(BlendList, IsPrefixesAlone) {
  EXPECT_THAT(parse({"a"}).prefixes, ElementsAre("a"));
  EXPECT_THAT(parse({" a\t", "b", "c\n"}).prefixes, ElementsAre("a", "b", "c"));
  EXPECT_THAT(parse({"a", "b"}).prefixes, ElementsAre("a", "b"));
  EXPECT_FALSE(parse({"a", "b"}).weighted());
  // If a list has an odd number of words, no word is a weight, even if it looks like a number.
  EXPECT_THAT(parse({"1", "a", "2"}).prefixes, ElementsAre("1", "a", "2"));
  EXPECT_THAT(parse({"7"}).prefixes, ElementsAre("7"));
}

TEST(BlendList, IsWeightsAndPrefixesInTurn) {
  const blend_list list = parse({"30", "a", " 7e1 ", " b"});
  EXPECT_THAT(list.prefixes, ElementsAre("a", "b"));
  EXPECT_THAT(list.weights, ElementsAre(30.0, 70.0));
  EXPECT_THAT(parse({"1", "2"}).prefixes, ElementsAre("2"));
  EXPECT_THAT(parse({"1", "2"}).weights, ElementsAre(1.0));
  EXPECT_THAT(parse({"./1", "2"}).weights, IsEmpty());
  EXPECT_THAT(parse({"./0,7", "a,1"}).prefixes, ElementsAre("./0,7", "a,1"));
  EXPECT_THAT(parse({",", "1,", ",1", "1,2,3"}).prefixes, ElementsAre(",", "1,", ",1", "1,2,3"));
  EXPECT_THAT(parse({"1_000", "a"}).weights, ElementsAre(1000.0));
}

TEST(BlendList, RefusesWhatIsNoBlend) {
  expect_list_refused({}, "--data-path has no value");
  expect_list_refused({"0.3", "a", "b", "c"},
                      "'0.3' (word 1) is a weight, and 'b' (word 3) is not");
  expect_list_refused({"a", "b", "0.3", "c"},
                      "'0.3' (word 3) is a weight, and 'a' (word 1) is not");
  expect_list_refused({"a", " ", "b"}, "word 2 is empty");
  expect_list_refused({"1", ""}, "word 2 is empty");
  expect_list_refused({"0,7", "a", "0,3", "b"},
                      "'0,7' is not a weight; write it with a decimal point, for example 0.7");
  expect_list_refused({"1", "a", "1,5", "b"}, "'1,5' is not a weight");
  expect_list_refused({"0,7"}, "a prefix with this name is ./0,7");
  expect_list_refused({"0", "a", "1", "b"},
                      "the weight of 'a' is 0, expected a finite number above 0");
  expect_list_refused({"1", "a", "-0.5", "b"}, "the weight of 'b' is -0.5");
  expect_list_refused({"1", "a", "nan", "b"}, "the weight of 'b' is nan");
  expect_list_refused({"inf", "a"}, "the weight of 'a' is inf");
  expect_list_refused({"1e999", "a"}, "the weight of 'a' is 1e999");
  expect_list_refused({"1e-999", "a"}, "the weight of 'a' is 1e-999");
}

// Numbers are read as by Python's float(). The expected values come from Python. A property test
// compares more numbers with Python itself.
TEST(PythonFloat, ReadsWhatPythonReads) {
  const double inf = std::numeric_limits<double>::infinity();
  const std::vector<std::pair<std::string, double>> numbers = {{"1", 1},
                                                               {"+1.5", 1.5},
                                                               {"-2", -2},
                                                               {".5", 0.5},
                                                               {"5.", 5},
                                                               {"1e3", 1000},
                                                               {"1E-3", 0.001},
                                                               {" 1 ", 1},
                                                               {"\t1\n", 1},
                                                               {"1_000.5_0", 1000.5},
                                                               {"inf", inf},
                                                               {"-Infinity", -inf},
                                                               {"1e400", inf},
                                                               {"1e-400", 0},
                                                               {"0001", 1},
                                                               {"1e0_1", 10},
                                                               {"\x1c"
                                                                "1",
                                                                1},
                                                               {"00.1e400", inf},
                                                               {"0.00001e-320", 0},
                                                               {"1e99999999999999999999", inf},
                                                               {"1e-99999999999999999999", 0}};
  for (const auto& [text, value] : numbers) {
    const std::optional<double> read = read_python_float(text);
    ASSERT_TRUE(read.has_value()) << text;
    EXPECT_EQ(*read, value) << text;
  }
  EXPECT_TRUE(std::isnan(*read_python_float("NaN")));
  for (const char* text :
       {"",    " ",   "a",  "1a", "1 2", "_1",  "1_",    "1__0", "1._5", "1_e5", "0x10", "++1",
        "+-1", "--1", "e5", ".",  "1e",  "1e+", "infin", "nan1", "1,5",  "+",    "- 1"}) {
    EXPECT_FALSE(read_python_float(text).has_value()) << '\'' << text << '\'';
  }
}

}  // namespace
}  // namespace millrace::dataset
