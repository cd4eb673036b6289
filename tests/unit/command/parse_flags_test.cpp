// SPDX-License-Identifier: Apache-2.0
#include <millrace/command/parse_flags.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace millrace::command {
namespace {

namespace po = boost::program_options;
using words = std::vector<std::string>;

po::options_description some_flags() {
  po::options_description flags;
  auto add = flags.add_options();
  add("input", po::value<std::vector<std::string>>()->multitoken()->value_name("FILE ..."));
  add("output-prefix", po::value<std::string>()->value_name("PREFIX"));
  add("workers", po::value<int>()->value_name("N"));
  add("resume", "");
  add("help,h", "");
  return flags;
}

// Returns the message of the error that refuses a command line.
std::string refusal(const words& line, const po::positional_options_description& positions = {}) {
  try {
    (void)parse_flags(line, some_flags(), positions);
  } catch (const usage_error& e) {
    return e.what();
  }
  return "nothing";
}

TEST(ParseFlags, TakesWhatIsRight) {
  const auto given =
      parse_flags({"--input", "a", "b", "--workers=3", "-h", "--output-prefix", "-"}, some_flags());
  EXPECT_EQ(given["input"].as<words>(), (words{"a", "b"}));
  EXPECT_EQ(given["workers"].as<int>(), 3);
  EXPECT_EQ(given["output-prefix"].as<std::string>(), "-");
  EXPECT_EQ(given.count("help"), 1U);
  EXPECT_EQ(given.count("resume"), 0U);
  EXPECT_EQ(parse_flags(0, nullptr, some_flags()).count("help"), 0U);
  EXPECT_EQ(parse_flags({"--output-prefix=--x"}, some_flags())["output-prefix"].as<std::string>(),
            "--x");
}

TEST(ParseFlags, SaysWhatIsWrongAndWhatIsNear) {
  EXPECT_EQ(refusal({"--worker", "3"}), "there is no flag --worker; did you mean --workers?");
  EXPECT_EQ(refusal({"--worker=3"}), "there is no flag --worker; did you mean --workers?");
  EXPECT_EQ(refusal({"--out", "x"}), "there is no flag --out; did you mean --output-prefix?");
  EXPECT_EQ(refusal({"--frobnicate"}), "there is no flag --frobnicate");
  EXPECT_EQ(refusal({"-x"}), "there is no flag -x");
  EXPECT_EQ(refusal({"--workers"}), "--workers has no value: expected --workers N");
  EXPECT_EQ(refusal({"--workers="}), "--workers has no value: expected --workers N");
  EXPECT_EQ(refusal({"--input"}), "--input has no value: expected --input FILE ...");
  EXPECT_EQ(refusal({"--output-prefix", "--resume"}),
            "--output-prefix has no value: expected one before --resume");
  EXPECT_EQ(refusal({"--input=a", "--b"}), "there is no flag --b");
  EXPECT_EQ(refusal({"--resume=yes"}), "--resume takes no value");
  EXPECT_EQ(refusal({"--workers", "2", "--workers", "2"}),
            "--workers is given twice; give it once");
  EXPECT_EQ(refusal({"--workers", "two"}), "--workers two: expected a whole number");
  EXPECT_EQ(refusal({"--workers", "2.5"}), "--workers 2.5: expected a whole number");
  EXPECT_EQ(refusal({"--workers", "3000000000"}), "--workers 3000000000: the number is too large");
}

TEST(ParseFlags, RefusesWordsThatBelongToNoFlag) {
  EXPECT_EQ(refusal({"a"}), "'a' belongs to no flag");
  EXPECT_EQ(refusal({"--output-prefix", "a", "b"}),
            "'b' belongs to no flag: --output-prefix takes no more values");
  EXPECT_EQ(refusal({"--resume", "b"}), "'b' belongs to no flag: --resume takes no more values");
}

TEST(ParseFlags, NamesWordsWherePositionsHaveNames) {
  po::positional_options_description positions;
  positions.add("input", -1);
  const auto given =
      parse_flags({"a", "--workers", "3", "b", "--", "--c"}, some_flags(), positions);
  EXPECT_EQ(given["input"].as<words>(), (words{"a", "b", "--c"}));
}

}  // namespace
}  // namespace millrace::command
