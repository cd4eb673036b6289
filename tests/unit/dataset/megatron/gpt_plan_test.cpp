// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/gpt_plan.hpp>
#include <millrace/error.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/indexed_dataset.hpp>

#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

using testing::AllOf;
using testing::HasSubstr;

gpt_plan plan_of(const gpt_request& request, std::int64_t tokens, std::int64_t sequences = 10) {
  return plan_gpt_index(request, {0, sequences}, tokens, "web train");
}

std::string refusal(const gpt_request& request, std::int64_t tokens, std::int64_t sequences = 10) {
  try {
    (void)plan_of(request, tokens, sequences);
  } catch (const config_error& e) {
    return e.what();
  }
  return "accepted";
}

/// Counts the epochs with Megatron's own loop.
std::int64_t naive_epochs(std::int64_t samples, std::int64_t length, std::int64_t tokens,
                          std::int64_t extra) {
  std::int64_t epochs = 1;
  for (std::int64_t have = tokens; have < samples * length + extra; have += tokens) ++epochs;
  return epochs;
}

TEST(GptPlan, TakesTheEpochsThatTheSamplesNeed) {
  for (const bool extra : {true, false}) {
    for (std::int64_t tokens = 2; tokens < 60; ++tokens) {
      for (std::int64_t samples = 0; samples < 40; ++samples) {
        const gpt_request request{
            .sequence_length = 7, .num_samples = samples, .add_extra_token = extra};
        const gpt_plan plan = plan_of(request, tokens);
        ASSERT_EQ(plan.epochs, naive_epochs(samples, 7, tokens, extra)) << tokens << " " << samples;
        ASSERT_GE(plan.samples, samples);
        ASSERT_EQ(plan.samples, (plan.epochs * tokens - extra) / 7);
      }
    }
  }
}

// The last epoch is shuffled separately if only a small part of it is needed. Each sample has 10
// tokens and a label, so 100 tokens give 9 samples. 0.80 * 9, truncated, is 7. So if 7 samples or
// more of the last epoch are needed, this epoch is shuffled together with the other epochs.
TEST(GptPlan, SeparatesALastEpochOfWhichLittleIsNeeded) {
  const auto plan = [](std::int64_t samples) {
    return plan_of({.sequence_length = 10, .num_samples = samples}, 100);
  };
  EXPECT_FALSE(plan(9).separate_last_epoch);  // one epoch
  EXPECT_TRUE(plan(10).separate_last_epoch);
  EXPECT_EQ(plan(10).samples_before_last_epoch, 9);
  EXPECT_TRUE(plan(15).separate_last_epoch);
  EXPECT_FALSE(plan(16).separate_last_epoch);
  EXPECT_EQ(plan(16).epochs, 2);
}

TEST(GptPlan, CountsPartialSamplesOfValidationOnly) {
  gpt_request request{.sequence_length = 10, .drop_last_partial_validation_sequence = false};
  EXPECT_EQ(plan_of(request, 96).samples, 9);
  request.part = split_part::valid;
  EXPECT_EQ(plan_of(request, 96).samples, 10);
  EXPECT_TRUE(plan_of(request, 96).last_sample_is_partial);
  EXPECT_EQ(plan_of(request, 91).samples, 9);
  EXPECT_FALSE(plan_of(request, 91).last_sample_is_partial);
  EXPECT_EQ(plan_of(request, 0).samples, 0);
  EXPECT_FALSE(plan_of(request, 0).last_sample_is_partial);
}

// Samples are counted in single precision, which cannot represent 2^24 + 1. The expected counts are
// Megatron's.
TEST(GptPlan, CountsThemInSinglePrecision) {
  gpt_request request{.sequence_length = 2,
                      .part = split_part::valid,
                      .drop_last_partial_validation_sequence = false};
  EXPECT_EQ(plan_of(request, 16777217 + 1).samples, 8388608);
  request.sequence_length = 4096;
  EXPECT_EQ(plan_of(request, 134217737).samples, 32768);
  request.sequence_length = 2;  // rounded up: the last sample would not exist
  EXPECT_THAT(refusal(request, (std::int64_t{1} << 40) - 1000),
              AllOf(HasSubstr("single precision"), HasSubstr("drop the last partial sample")));
  request.num_samples = 16777217;  // rounded down, below the requested count
  EXPECT_THAT(refusal(request, 33554435), HasSubstr("counts 16777216 in single precision"));
}

TEST(GptPlan, HasNoSamplesWhereNoneAreAskedFor) {
  EXPECT_EQ(plan_of({.sequence_length = 8, .num_samples = 0}, 0, 0).samples, 0);
  EXPECT_EQ(plan_of({.sequence_length = 8}, 0, 0).samples, 0);
  EXPECT_EQ(plan_of({.sequence_length = 8}, 8).samples, 0);  // one token short of a sample
}

TEST(GptPlan, RefusesSamplesOfNoTokens) {
  EXPECT_THAT(refusal({.sequence_length = 8, .num_samples = 5}, 0, 0),
              AllOf(HasSubstr("web train requests 5 samples of 8 tokens, but has 0"),
                    HasSubstr("larger weight in --split")));
  EXPECT_THAT(refusal({.sequence_length = 8, .num_samples = 5}, 1), HasSubstr("but has 1"));
}

TEST(GptPlan, RefusesWhatIsOutOfRange) {
  constexpr auto most = std::numeric_limits<std::int64_t>::max();
  EXPECT_THAT(refusal({.sequence_length = 1}, 9), HasSubstr("the sequence length is 1"));
  EXPECT_THAT(refusal({.sequence_length = 2147483647}, 9), HasSubstr("expected 2 to 2147483646"));
  EXPECT_THAT(refusal({.sequence_length = 8, .num_samples = -1}, 9), HasSubstr("requests -1"));
  EXPECT_THAT(refusal({.sequence_length = 8, .num_samples = most}, 9), HasSubstr("2^63 tokens"));
  EXPECT_THAT(refusal({.sequence_length = 8, .num_samples = 1LL << 40}, 9), HasSubstr("epochs"));
  EXPECT_THAT(refusal({.sequence_length = 8}, 9, 2147483648), HasSubstr("in 32 bits"));
}

// If values exceed 32 bits, the indices use wider types. The types depend only on the sizes, so the
// test does not need an array of 2^31 elements.
TEST(GptPlan, WidensIndicesThatOutgrow32Bits) {
  gpt_request request{.sequence_length = 2, .num_samples = 4294967293 / 3};
  EXPECT_FALSE(plan_of(request, 3 << 20, 1 << 20).wide_sample_index);
  const gpt_plan many = plan_of({.sequence_length = 8, .num_samples = 1 << 28}, 1 << 20, 1 << 20);
  EXPECT_EQ(many.document_entries(), 2049LL << 20);
  EXPECT_TRUE(many.wide_sample_index);
  EXPECT_FALSE(many.wide_shuffle_index);
  EXPECT_TRUE(plan_of({.sequence_length = 2}, 2 * 4294967294LL + 1, 8).wide_shuffle_index);
  EXPECT_FALSE(plan_of({.sequence_length = 2}, 2 * 4294967293LL + 1, 8).wide_shuffle_index);
}

TEST(GptParts, AreThePlansOfThePartsOfARandomDataset) {
  std::mt19937_64 random(test::seed(11));
  const test::temp_folder folder;
  std::int64_t planned = 0;
  for (int i = 0; i < 200; ++i) {
    test::documents_of<std::uint16_t> documents(random() % 30);
    std::vector<std::int64_t> lengths;
    for (auto& document : documents) {
      document.emplace_back(random() % 9);  // some sequences are empty
      lengths.push_back(std::ssize(document.back()));
    }
    test::write_dataset(folder / "random", documents);
    const indexed_dataset data(folder / "random");
    const split_matrix split(
        std::vector<const char*>{"969, 30, 1", "1", "3,0,2", "0.2,0.5,0.3"}[random() % 4]);
    const std::array<std::optional<std::int64_t>, 3> samples = {
        std::nullopt, 0, static_cast<std::int64_t>(random() % 4)};
    const gpt_request request{.sequence_length = static_cast<std::int64_t>(1 + random() % 12),
                              .add_extra_token = random() % 2 == 0};
    std::vector<gpt_part> expected;
    bool refused = false;
    for (const split_part part : split_parts) {
      if (!split.has(part)) continue;
      const sequence_range range = split.of(part, data.sequence_count());
      gpt_request own = request;
      own.part = part;
      own.num_samples = samples[static_cast<std::size_t>(part)];
      const auto tokens = std::accumulate(lengths.begin() + range.first,
                                          lengths.begin() + range.last, std::int64_t{0});
      try {
        expected.push_back({part, plan_gpt_index(own, range, tokens, "")});
      } catch (const config_error&) {
        refused = true;  // samples of a part without tokens
      }
    }
    if (refused) {
      EXPECT_THROW((void)plan_gpt_parts(data, split, request, samples), config_error);
      continue;
    }
    const auto found = plan_gpt_parts(data, split, request, samples);
    ASSERT_EQ(found.size(), expected.size());
    for (std::size_t p = 0; p < found.size(); ++p) {
      ASSERT_EQ(found[p].part, expected[p].part);
      ASSERT_EQ(found[p].plan, expected[p].plan);
      planned += found[p].plan.samples > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(planned, 100);
}

}  // namespace
}  // namespace millrace::dataset
