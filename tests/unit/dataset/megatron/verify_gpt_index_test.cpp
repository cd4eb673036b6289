// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/verify_gpt_index.hpp>

#include <cstdint>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/megatron/gpt_index.hpp>

#include "support/seed.hpp"

namespace millrace::dataset {
namespace {

using testing::HasSubstr;

formats::unaligned_span<std::int32_t> lengths_view(const std::vector<std::int32_t>& lengths) {
  return formats::unaligned_span<std::int32_t>(std::as_bytes(std::span(lengths)));
}

gpt_plan plan_of(const gpt_request& request, const std::vector<std::int32_t>& lengths) {
  const sequence_range all{0, std::ssize(lengths)};
  return plan_gpt_index(request, all, count_tokens(lengths_view(lengths), all, 0), "data");
}

gpt_index_view built(const gpt_plan& plan, const std::vector<std::int32_t>& lengths) {
  return view_of(build_gpt_index(plan, lengths_view(lengths), "data"));
}

class VerifyGptIndex : public testing::Test {
 protected:
  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }
  std::vector<std::int32_t> random_lengths() {
    std::vector<std::int32_t> lengths;
    for (auto i = below(20); i >= 0; --i) {
      lengths.push_back(below(5) == 0 ? 0 : static_cast<std::int32_t>(below(30)));
    }
    lengths.push_back(40);
    return lengths;
  }
  gpt_request random_request() {
    return {.sequence_length = 2 + below(20),
            .num_samples = below(60),
            .part = split_part::valid,
            .random_seed = static_cast<std::uint32_t>(random_()),
            .add_extra_token = below(2) == 0,
            .drop_last_partial_validation_sequence = below(3) != 0};
  }

  std::mt19937_64 random_{test::seed(11)};
};

TEST_F(VerifyGptIndex, AcceptsWhatIsBuilt) {
  int partial = 0;
  int apart = 0;
  for (int round = 0; round < 500; ++round) {
    const auto lengths = random_lengths();
    const gpt_plan plan = plan_of(random_request(), lengths);
    try {
      const gpt_index_view index = built(plan, lengths);
      ASSERT_NO_THROW(verify_gpt_index(plan, lengths_view(lengths), index)) << round;
    } catch (const config_error&) {
      continue;  // the last sequence is empty; Megatron refuses
    }
    partial += plan.last_sample_is_partial;
    apart += plan.separate_last_epoch;
  }
  EXPECT_GT(partial, 30);
  EXPECT_GT(apart, 30);
}

// The full check finds every altered element of every column, including elements that a check of
// some samples misses.
TEST_F(VerifyGptIndex, FindsEveryNumberThatIsAltered) {
  const std::vector<std::int32_t> lengths = {7, 0, 12, 5, 9, 1, 30, 8};
  const gpt_plan plan = plan_of({.sequence_length = 4, .num_samples = 40}, lengths);
  ASSERT_GT(plan.epochs, 1);
  int altered = 0;
  for (int column = 0; column < 3; ++column) {
    for (std::size_t at = 0;; ++at) {
      gpt_index index = build_gpt_index(plan, lengths_view(lengths), "data");
      bool inside = true;
      const auto alter = [&](auto& array) {
        using number = typename std::remove_reference_t<decltype(array.numbers())>::value_type;
        inside = at < array.numbers().size();
        if (!inside) return;
        number& old = array.numbers()[at];
        old = old == 0 ? number{1} : static_cast<number>(old - 1);
      };
      if (column == 0) alter(index.document);
      if (column == 1) std::visit(alter, index.sample);
      if (column == 2) std::visit(alter, index.shuffle);
      if (!inside) break;
      EXPECT_THROW(verify_gpt_index(plan, lengths_view(lengths), view_of(std::move(index))),
                   format_error)
          << "column " << column << ", number " << at;
      ++altered;
    }
  }
  EXPECT_EQ(altered, plan.document_entries() + 2 * (plan.samples + 1) + plan.samples);
}

TEST_F(VerifyGptIndex, NamesTheFirstThatIsWrong) {
  const std::vector<std::int32_t> lengths = {7, 12, 5};
  const gpt_plan plan = plan_of({.sequence_length = 4}, lengths);
  const auto fault = [&](gpt_index index) -> std::string {
    gpt_index_view damaged = view_of(std::move(index));
    damaged.document_path = damaged.sample_path = damaged.shuffle_path = "file";
    damaged.document_offset = damaged.sample_offset = damaged.shuffle_offset = 128;
    try {
      verify_gpt_index(plan, lengths_view(lengths), damaged);
    } catch (const format_error& e) {
      return e.what();
    }
    return "accepted";
  };
  const auto whole = [&] { return build_gpt_index(plan, lengths_view(lengths), "data"); };
  gpt_index index = whole();
  index.document.numbers()[1] = index.document.numbers()[0];
  EXPECT_THAT(fault(std::move(index)), testing::AllOf(HasSubstr("132"), HasSubstr("entry 1 is ")));
  index = whole();
  std::get<0>(index.sample).numbers()[5] += 1;
  EXPECT_THAT(fault(std::move(index)), testing::AllOf(HasSubstr("144"), HasSubstr("row 2 is (")));
  index = whole();
  auto shuffle = std::get<0>(index.shuffle).numbers();
  shuffle[2] = shuffle[1];
  EXPECT_THAT(fault(std::move(index)),
              testing::AllOf(HasSubstr("136"), HasSubstr("as an entry before it is")));
}

// The sizes of the files do not depend on whether samples have an extra token. has_extra_token()
// gives the right answer if any row differs between the two cases.
TEST_F(VerifyGptIndex, TellsWhetherSamplesHaveAnExtraToken) {
  int told = 0;
  int same = 0;
  for (int round = 0; round < 500; ++round) {
    const auto lengths = random_lengths();
    gpt_request request = random_request();
    request.drop_last_partial_validation_sequence = true;
    request.add_extra_token = true;
    const gpt_plan with = plan_of(request, lengths);
    request.add_extra_token = false;
    const gpt_plan without = plan_of(request, lengths);
    const auto of_with = has_extra_token(with, lengths_view(lengths), built(with, lengths));
    const auto of_without =
        has_extra_token(without, lengths_view(lengths), built(without, lengths));
    EXPECT_NE(of_with, std::optional(false)) << round;
    EXPECT_NE(of_without, std::optional(true)) << round;
    (of_with ? told : same) += 1;
  }
  EXPECT_GT(told, 100);
  EXPECT_GT(same, 50);
}

}  // namespace
}  // namespace millrace::dataset
