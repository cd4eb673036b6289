// SPDX-License-Identifier: Apache-2.0
#include "split/splitters.hpp"

#include <array>
#include <string>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/instruction_sets.hpp"

namespace millrace::tokenizer::detail {
namespace {

constexpr std::string_view llama3_regex =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
    R"(|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view tiktoken_cl100k_regex =
    R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+)"
    R"(|\s++$|\s*[\r\n]|\s+(?!\S)|\s)";

TEST(PatternNamed, KnowsTheNamesOfTheCommandLine) {
  EXPECT_EQ(pattern_named("r50k"), pattern::r50k);
  EXPECT_EQ(pattern_named("p50k"), pattern::r50k);
  EXPECT_EQ(pattern_named("llama4"), pattern::o200k);
  EXPECT_EQ(pattern_named("qwen3.5"), pattern::qwen35);
  EXPECT_EQ(pattern_named("megatron_v1"), pattern::megatron_v1);
  EXPECT_EQ(pattern_named("megatron_v2"), pattern::tekken);
  EXPECT_EQ(pattern_named(""), std::nullopt);
  EXPECT_EQ(pattern_named("LLAMA3"), std::nullopt);
}

TEST(PatternOfRegex, TakesTheExactTextAlone) {
  EXPECT_EQ(pattern_of_regex(llama3_regex), pattern::llama3);
  EXPECT_EQ(pattern_of_regex(llama3_regex, regex_dialect::rust), pattern::llama3);
  std::string other(llama3_regex);
  other.replace(other.find("{1,3}"), 5, "{1,2}");
  EXPECT_EQ(pattern_of_regex(other), std::nullopt);
  EXPECT_EQ(pattern_of_regex(""), std::nullopt);
}

// In Rust, `{1,3}+` is possessive. In Oniguruma, it repeats the repeat, so it matches any number of
// digits.
TEST(PatternOfRegex, KnowsThatTheEnginesDisagree) {
  EXPECT_EQ(pattern_of_regex(tiktoken_cl100k_regex, regex_dialect::rust), pattern::cl100k);
  EXPECT_EQ(pattern_of_regex(tiktoken_cl100k_regex, regex_dialect::oniguruma), std::nullopt);
}

TEST(PatternOfRegex, KnowsWhatOthersMadeOfThese) {
  EXPECT_EQ(
      pattern_of_regex(
          R"('(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]++[\r\n]*)"
          R"(|\s*[\r\n]|\s+(?!\S)|\s+)"),
      pattern::qwen2);
  EXPECT_EQ(pattern_of_regex(R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1})"
                             R"(| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)"),
            pattern::seed_coder);
  EXPECT_EQ(pattern_of_regex(" ?[^(\\s|[.,!?…。，、।۔،])]+"), pattern::bloom);
}

TEST(PatternOfRegexesAndDigits, KnowsDeepSeekCoder) {
  const std::array<std::string_view, 4> splits = {"[\r\n]", R"(\s?\p{L}+)", R"(\s?\p{P}+)",
                                                  "[一-龥ࠀ-一가-\uD7FF]+"};
  EXPECT_EQ(pattern_of_regexes_and_digits(splits), pattern::deepseek_coder);
  EXPECT_EQ(pattern_of_regexes_and_digits(std::span(splits).first(3)), std::nullopt);
  EXPECT_EQ(pattern_of_regexes_and_digits({}), std::nullopt);
  EXPECT_EQ(pattern_of_regexes(splits), std::nullopt);
}

TEST(PatternOfRegexes, KnowsDeepSeekByItsThreeSplits) {
  const std::array<std::string_view, 3> splits = {
      R"(\p{N}{1,3})", "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+",
      R"([!\"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+)"
      R"(| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)"};
  EXPECT_EQ(pattern_of_regexes(splits), pattern::deepseek_v3);
  EXPECT_EQ(pattern_of_regexes(std::span(splits).first(2)), std::nullopt);
  EXPECT_EQ(pattern_of_regexes({}), std::nullopt);
  EXPECT_EQ(pattern_of_regexes({{llama3_regex}}), pattern::llama3);
}

}  // namespace

namespace {

TEST(InstructionSet, RunsTheBestAndWhatIsNarrower) {
  const instruction_set widest = instruction_set_for(nullptr);
  EXPECT_TRUE(can_run(best_instruction_set()));
  EXPECT_EQ(best_instruction_set(), instruction_set_for(isa_variable()));
  EXPECT_TRUE(can_run(instruction_set::portable));
  EXPECT_TRUE(can_run(widest));
  for (const auto set : test::instruction_sets) {
    if (set > widest) {
      EXPECT_FALSE(can_run(set));
    }
  }
  if (can_run(instruction_set::avx512)) {
    EXPECT_TRUE(can_run(instruction_set::avx2));
    EXPECT_EQ(widest, instruction_set::avx512);
  }
#if defined(__x86_64__)
  EXPECT_FALSE(can_run(instruction_set::neon));
#elif defined(__AARCH64EL__)
  EXPECT_EQ(widest, instruction_set::neon);
#endif
}

TEST(InstructionSet, IsTheOneThatTheEnvironmentNames) {
  EXPECT_EQ(instruction_set_for(""), instruction_set_for(nullptr));
  EXPECT_EQ(fault_of_isa(nullptr), "");
  EXPECT_EQ(fault_of_isa(""), "");
  const std::pair<const char*, instruction_set> names[] = {{"portable", instruction_set::portable},
                                                           {"neon", instruction_set::neon},
                                                           {"avx2", instruction_set::avx2},
                                                           {"avx512", instruction_set::avx512}};
  for (const auto& [name, set] : names) {
    if (can_run(set)) {
      EXPECT_EQ(instruction_set_for(name), set);
      EXPECT_EQ(fault_of_isa(name), "");
    } else {
      EXPECT_THAT(fault_of_isa(name), testing::HasSubstr("which this processor cannot run"));
    }
  }
  EXPECT_THAT(fault_of_isa("AVX2"), testing::StartsWith("MILLRACE_ISA is 'AVX2', expected one of"));
  EXPECT_EQ(instruction_set_for("AVX2"), instruction_set_for(nullptr));
}

}  // namespace

}  // namespace millrace::tokenizer::detail
