// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/data_flags.hpp>
#include <millrace/error.hpp>

#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/paths.hpp"

namespace millrace::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using words = std::vector<std::string>;
using typed = std::vector<std::pair<std::string, words>>;

data_blends resolve(const typed& given) {
  data_flags flags;
  for (const auto& [flag, values] : given) EXPECT_TRUE(set_data_flag(flags, flag, values)) << flag;
  return resolve_data_flags(flags);
}

void expect_flags_refused(const typed& given, const char* why) {
  EXPECT_THAT([&] { return resolve(given); }, ThrowsMessage<config_error>(HasSubstr(why)));
}

TEST(DataFlags, SplitOneBlend) {
  const data_blends blends =
      resolve({{"--data-path", {"0.3", "a", "0.7", "b"}}, {"--split", {"80,15,5"}}});
  ASSERT_TRUE(blends.blend.has_value());
  EXPECT_THAT(blends.blend->weights, ElementsAre(0.3, 0.7));
  EXPECT_EQ(blends.split, "80,15,5");
  EXPECT_EQ(blends.surplus, 0.005);
  // Megatron's default, including its spaces.
  EXPECT_EQ(resolve({{"--data-path", {"a"}}}).split, "969, 30, 1");
}

TEST(DataFlags, BlendEachPart) {
  const data_blends blends =
      resolve({{"--train-data-path", {"1", "a", "2", "b"}}, {"--test-data-path", {"c"}}});
  EXPECT_FALSE(blends.blend.has_value());
  EXPECT_FALSE(blends.split.has_value());
  ASSERT_TRUE(blends.per_part[0].has_value());
  EXPECT_THAT(blends.per_part[0]->prefixes, ElementsAre("a", "b"));
  EXPECT_FALSE(blends.per_part[1].has_value());
  EXPECT_THAT(blends.per_part[2]->prefixes, ElementsAre("c"));
}

TEST(DataFlags, ReadWordsFromAFile) {
  const test::temp_folder folder;
  const std::string path = folder / "words";
  test::write_text(path, " 0.3 a\n0.7\t\tb\r\n");
  const data_blends blends = resolve({{"--data-args-path", {path}}, {"--split", {"1,1,1"}}});
  EXPECT_THAT(blends.blend->prefixes, ElementsAre("a", "b"));
  EXPECT_THAT(blends.blend->weights, ElementsAre(0.3, 0.7));
  expect_flags_refused({{"--data-args-path", {path}}}, "requires --split, for example");
  test::write_text(path, " \n");
  expect_flags_refused({{"--data-args-path", {path}}, {"--split", {"1"}}}, "has no value");
  EXPECT_THROW(resolve({{"--data-args-path", {folder / "none"}}, {"--split", {"1"}}}), io_error);
}

TEST(DataFlags, ReadBlendsOfPartsFromAFile) {
  const test::temp_folder folder;
  const std::string path = folder / "blends.json";
  const auto of = [&](const char* text) {
    test::write_text(path, text);
    return resolve({{"--per-split-data-args-path", {path}}});
  };
  const auto refuse = [&](const char* text, const char* why) {
    test::write_text(path, text);
    expect_flags_refused({{"--per-split-data-args-path", {path}}}, why);
  };
  data_blends blends = of(R"({"note": {"train": [1, "]}\""], "x": [[], {}, null, 1e5]},
    "train": [0.3, "a b", "7e-1", "\u00e9\ud83d\ude00\n/\\"], "valid": "c  d\te", "test" : null })");
  EXPECT_THAT(blends.per_part[0]->prefixes, ElementsAre("a b", "\xc3\xa9\xf0\x9f\x98\x80\n/\\"));
  EXPECT_THAT(blends.per_part[0]->weights, ElementsAre(0.3, 0.7));
  EXPECT_THAT(blends.per_part[1]->prefixes, ElementsAre("c", "d", "e"));
  EXPECT_FALSE(blends.per_part[2].has_value());
  // If a key occurs twice, the last one counts, as in Python.
  blends = of(R"({"test": ["a"], "valid": null, "train": null, "test": ["b", "c", "d"]})");
  EXPECT_THAT(blends.per_part[2]->prefixes, ElementsAre("b", "c", "d"));

  refuse(R"({"train": ["a"], "valid": null})", R"("test" is missing, expected a blend, or null)");
  refuse(R"({"train": null, "valid": null, "test": null})", "no blend for");
  refuse(R"({"train": [], "valid": null, "test": null})", R"("train" has no value)");
  refuse(R"({"train": "", "valid": null, "test": null})", R"("train" has no value)");
  refuse(R"({"train": 3, "valid": null, "test": null})", R"("train" is not null, a string)");
  refuse(R"({"train": [["a"]], "valid": null, "test": null})", R"("train" is not null)");
  refuse(R"({"train": ["a", null, "b"], "valid": null, "test": null})", R"("train" is not null)");
  refuse(R"({"train": [1, 2], "valid": null, "test": null})",
         "2 (word 2) is a number, expected a prefix");
  refuse(R"({"train": ["a", 2, "b"], "valid": null, "test": null})", "2 (word 2) is a number");
  refuse(R"({"train": [NaN, "a"], "valid": null, "test": null})", "the weight of 'a' is NaN");
  refuse(R"(["train"])", "expected a JSON object");
  test::write_text(path, R"({"train": )");
  EXPECT_THROW(resolve({{"--per-split-data-args-path", {path}}}), format_error);
}

// Every truncation of the text is refused. Nothing after the end of the text is read.
TEST(DataFlags, RefuseEveryTruncationOfAFile) {
  const std::string whole = R"({"train": [0.3, "a", 1, "\u00e9"], "valid": "c", "test": null})";
  EXPECT_TRUE(read_part_blends(whole, "file")[0].has_value());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::vector<char> cut(whole.data(), whole.data() + size);
    EXPECT_THROW(read_part_blends({cut.data(), size}, "file"), format_error) << size;
  }
}

TEST(DataFlags, RefuseWhatDoesNotFitTogether) {
  expect_flags_refused({}, "the data is required: pass one of --data-path");
  expect_flags_refused({{"--data-path", {"a"}}, {"--data-args-path", {"b"}}},
                       "--data-path and --data-args-path both name the data");
  expect_flags_refused({{"--data-path", {"a"}}, {"--valid-data-path", {"b"}}},
                       "--data-path and --valid-data-path both name the data");
  expect_flags_refused({{"--per-split-data-args-path", {"a"}}, {"--train-data-path", {"b"}}},
                       "--per-split-data-args-path and --train-data-path both name the data");
  expect_flags_refused({{"--train-data-path", {"a"}}, {"--split", {"1,1,1"}}},
                       "--split '1,1,1' is given with --train-data-path");
  expect_flags_refused({{"--data-path", {"a"}}, {"--split", {"1,2,3,4"}}},
                       "expected at most three");
  expect_flags_refused({{"--data-path", {"a", "b"}}, {"--multiple-validation-sets", {}}},
                       "requires separate validation data");
  expect_flags_refused({{"--train-data-path", {"a"}}, {"--multiple-validation-sets", {}}},
                       "requires separate validation data");
  expect_flags_refused(
      {{"--valid-data-path", {"1", "a", "2", "b"}}, {"--multiple-validation-sets", {}}},
      "pass only prefixes, because each set is used completely");
  expect_flags_refused({{"--data-path", {"1", "a", "2", "b"}}, {"--full-validation", {}}},
                       "pass only prefixes, because each sample is used once");
  expect_flags_refused({{"--valid-data-path", {"1", "a", "2", "b"}}, {"--full-validation", {}}},
                       "pass only prefixes, because each sample is used once");
  EXPECT_TRUE(
      resolve({{"--train-data-path", {"1", "a"}}, {"--full-validation", {}}}).full_validation);
}

TEST(DataFlags, RefuseValuesThatAreNone) {
  data_flags flags;
  const auto set = [&](const char* flag, words values) {
    return [&flags, flag, values] { return set_data_flag(flags, flag, values); };
  };
  const auto says = [](const char* text) { return ThrowsMessage<config_error>(HasSubstr(text)); };
  EXPECT_FALSE(set("--seed", {"1"})());
  EXPECT_FALSE(set("data-path", {"1"})());
  EXPECT_THAT(set("--data-path", {}), says("--data-path is given nothing, expected prefixes"));
  EXPECT_THAT(set("--split", {"1", "2"}), says("--split is given '1' '2', expected one text"));
  EXPECT_THAT(set("--data-args-path", {}), says("expected one file"));
  EXPECT_THAT(set("--full-validation", {"yes"}), says("expected no value"));
  for (const char* bad : {"x", "-0.1", "nan", "inf", ""}) {
    EXPECT_THAT(set("--mid-level-dataset-surplus", {bad}),
                says("expected one number of 0 or more"));
  }
  EXPECT_TRUE(set("--mid-level-dataset-surplus", {"0.05"})());
  EXPECT_EQ(flags.mid_level_dataset_surplus, 0.05);
}

}  // namespace
}  // namespace millrace::dataset
