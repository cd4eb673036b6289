// SPDX-License-Identifier: Apache-2.0
#include "record/record_sampler.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "support/naive_sample.hpp"

namespace millrace::preprocess {
namespace {

record_sampler sampler_of(double rate, std::uint64_t seed,
                          const std::vector<std::string>& names = {"a.jsonl"}) {
  std::vector<input_file> inputs;
  for (const std::string& name : names) inputs.push_back({.path = name});
  return {{.rate = rate, .seed = seed}, inputs};
}

// Computed in Python from formats/spec/meta.md.
TEST(RecordSampler, HasTheNumbersOfTheSpecification) {
  EXPECT_EQ(test::sample_number(0, "a.jsonl", 0), 0x11dc7432e02aaaU);
  EXPECT_EQ(test::sample_number(0, "a.jsonl", 23), 0x6f4ee6d23ad1U);
  EXPECT_EQ(test::sample_number(1, "a.jsonl", 0), 0x651c4288bff6cU);
  EXPECT_EQ(test::sample_number(~std::uint64_t{0}, "web/b.jsonl.zst", std::uint64_t{1} << 40),
            0xc42ed43666375U);
  EXPECT_EQ(test::sample_number(7, "stdin", 3), 0xfe2833c5cbe09U);
  EXPECT_FALSE(sampler_of(0.558, 0).takes(0, 0));
  EXPECT_TRUE(sampler_of(0.559, 0).takes(0, 0));
  EXPECT_TRUE(sampler_of(0.0136, 0).takes(0, 23));
  EXPECT_FALSE(sampler_of(0.0135, 0).takes(0, 23));
  EXPECT_TRUE(sampler_of(0.497, 7, {"x", "-"}).takes(1, 3)) << "- has the name stdin";
  EXPECT_FALSE(sampler_of(0.496, 7, {"x", "-"}).takes(1, 3));
}

TEST(RecordSampler, AgreesWithTheRule) {
  for (const double rate : {1e-3, 0.1, 0.3, 0.5, 0.999, 1.0}) {
    for (const std::uint64_t seed : {0U, 5U}) {
      const record_sampler sampler = sampler_of(rate, seed, {"a.jsonl", "b/c.jsonl.gz"});
      for (std::uint64_t byte = 0; byte < 20'000; byte += 7) {
        const auto of = [&](const char* name) {
          return static_cast<double>(test::sample_number(seed, name, byte)) <
                 rate * std::ldexp(1.0, 53);
        };
        ASSERT_EQ(sampler.takes(0, byte), of("a.jsonl")) << rate << ' ' << byte;
        ASSERT_EQ(sampler.takes(1, byte), of("b/c.jsonl.gz")) << rate << ' ' << byte;
      }
    }
  }
}

TEST(RecordSampler, TakesTheWantedPartOfAnyRecords) {
  for (const double rate : {0.001, 0.01, 0.25, 0.9}) {
    for (const std::uint64_t step : {1U, 64U, 1000U, 4096U}) {
      const record_sampler sampler = sampler_of(rate, step);
      constexpr std::int64_t records = 1'000'000;
      std::int64_t taken = 0;
      for (std::int64_t i = 0; i < records; ++i) {
        taken += sampler.takes(0, static_cast<std::uint64_t>(i) * step) ? 1 : 0;
      }
      const double wanted = rate * records;
      EXPECT_NEAR(static_cast<double>(taken), wanted, 4.5 * std::sqrt(wanted * (1 - rate)))
          << rate << ' ' << step;
    }
  }
}

TEST(RecordSampler, TakesAllOfALowerRateAtAHigherOne) {
  const record_sampler low = sampler_of(0.2, 3);
  const record_sampler high = sampler_of(0.21, 3);
  const record_sampler all = sampler_of(1, 3);
  for (std::uint64_t byte = 0; byte < 10'000; ++byte) {
    EXPECT_TRUE(!low.takes(0, byte) || high.takes(0, byte)) << byte;
    EXPECT_TRUE(all.takes(0, byte)) << byte;
  }
}

// Two samples of half of the records have a quarter in common if they are independent.
TEST(RecordSampler, ChoosesAnewForEachSeedAndName) {
  const record_sampler first = sampler_of(0.5, 0, {"a", "b", "a"});
  const record_sampler second = sampler_of(0.5, 1);
  const record_sampler next = sampler_of(0.5, 0, {"a.jsonl"});
  constexpr std::uint64_t records = 100'000;
  std::int64_t seeds = 0;
  std::int64_t names = 0;
  for (std::uint64_t byte = 0; byte < records; ++byte) {
    seeds += next.takes(0, byte) && second.takes(0, byte) ? 1 : 0;
    names += first.takes(0, byte) && first.takes(1, byte) ? 1 : 0;
    ASSERT_EQ(first.takes(0, byte), first.takes(2, byte)) << "the same file, listed again";
  }
  EXPECT_NEAR(static_cast<double>(seeds), records / 4.0, 4.5 * std::sqrt(records * 3 / 16.0));
  EXPECT_NEAR(static_cast<double>(names), records / 4.0, 4.5 * std::sqrt(records * 3 / 16.0));
}

}  // namespace
}  // namespace millrace::preprocess
