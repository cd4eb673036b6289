// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/sample/fields.hpp>

#include <cstdint>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/attention_mask.hpp"
#include "support/seed.hpp"
#include "unit/dataset/sample/naive_fields.hpp"

namespace millrace::dataset {
namespace {

using test::ids;
using testing::ElementsAre;

constexpr std::int64_t eod = 9;

test::naive_sample fields_of(const ids& text, std::int64_t real, const field_options& options) {
  return test::filled_fields<std::int64_t>(text, real, options);
}

TEST(Fields, AreATextAndItsLabels) {
  const auto s = fields_of({1, 2, eod, 3, 4}, 5, {.eod = eod});
  EXPECT_THAT(s.tokens, ElementsAre(1, 2, eod, 3));
  EXPECT_THAT(s.labels, ElementsAre(2, eod, 3, 4));
  EXPECT_THAT(s.loss_mask, ElementsAre(1, 1, 1, 1));
  EXPECT_THAT(s.position_ids, ElementsAre(0, 1, 2, 3));
}

TEST(Fields, ResetPositionsBehindEachEod) {
  const auto s = fields_of({1, eod, eod, 3, 4, 5}, 6, {.reset_position_ids = true, .eod = eod});
  EXPECT_THAT(s.position_ids, ElementsAre(0, 1, 0, 0, 1));
  EXPECT_THAT(s.loss_mask, ElementsAre(1, 1, 1, 1, 1));
}

// The loss of predicting an eod counts. The loss of predicting the next document from an eod does
// not count.
TEST(Fields, DropTheLossOfTheInputEod) {
  const auto s = fields_of({1, eod, 3, eod, 5, eod}, 6, {.eod_mask_loss = true, .eod = eod});
  EXPECT_THAT(s.loss_mask, ElementsAre(1, 0, 1, 0, 1));
  EXPECT_THAT(s.position_ids, ElementsAre(0, 1, 2, 3, 4));
}

TEST(Fields, WithoutAnExtraTokenHaveNoLastLabel) {
  const auto s = fields_of({1, 2, 3}, 3, {.extra_token = false});
  EXPECT_THAT(s.tokens, ElementsAre(1, 2, 3));
  EXPECT_THAT(s.labels, ElementsAre(2, 3, 0));
  EXPECT_THAT(s.loss_mask, ElementsAre(1, 1, 0));
}

TEST(Fields, OfPaddingAreZero) {
  const auto s = fields_of({1, 2, -1, -1, -1}, 2, {});
  EXPECT_THAT(s.tokens, ElementsAre(1, 2, 0, 0));
  EXPECT_THAT(s.labels, ElementsAre(2, 0, 0, 0));
  EXPECT_THAT(s.loss_mask, ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(s.position_ids, ElementsAre(0, 1, 2, 3));
}

// If padding has an id of its own, tokens of the dataset with this id count as padding, too.
TEST(Fields, TakeThePadIdForPaddingInTheTextToo) {
  const auto s = fields_of({1, 5, 2, 3}, 4, {.pad = 5});
  EXPECT_THAT(s.tokens, ElementsAre(1, 0, 2));
  EXPECT_THAT(s.labels, ElementsAre(0, 2, 3));
  EXPECT_THAT(s.loss_mask, ElementsAre(0, 1, 1));
}

TEST(Fields, KnowPaddingThatTheTextCannotHold) {
  // The pad id is -1, which uint16 cannot hold, so padding is 0 in the text. The zero before the
  // padding is a real token.
  const auto s = test::filled_fields<std::uint16_t>({7, 0, 0, 0}, 2, {});
  EXPECT_THAT(s.loss_mask, ElementsAre(1, 0, 0));
  // 65535 does not count as -1.
  const auto t = test::filled_fields<std::uint16_t>({7, 65535, 1}, 3, {});
  EXPECT_THAT(t.labels, ElementsAre(65535, 1));
  EXPECT_THAT(t.loss_mask, ElementsAre(1, 1));
}

// If pad and eod have the same id, padding resets positions in the same way as an eod.
TEST(Fields, OfPaddingThatIsEodAreThoseOfEod) {
  const field_options options{
      .reset_position_ids = true, .eod_mask_loss = true, .eod = eod, .pad = eod};
  const auto s = fields_of({1, 2, eod, eod, eod, eod}, 2, options);
  EXPECT_THAT(s.position_ids, ElementsAre(0, 1, 2, 0, 0));
  EXPECT_THAT(s.tokens, ElementsAre(1, 2, 0, 0, 0));
}

TEST(Fields, AreOnlyMadeWhereTheyAreWanted) {
  const std::vector<std::uint16_t> text = {1, 2, 3, 4};
  std::vector<std::int32_t> labels(3);
  fill_fields<std::uint16_t, std::int32_t>(text, 4, 3, {}, {.labels = labels});
  EXPECT_THAT(labels, ElementsAre(2, 3, 4));
  std::vector<float> loss(3);
  fill_fields<std::uint16_t, std::int32_t>(text, 2, 3, {}, {.loss_mask = loss});
  EXPECT_THAT(loss, ElementsAre(1, 0, 0));
}

TEST(Fields, HaveParts) {
  std::vector<std::int64_t> tokens(4);
  const sample_fields<> out{.tokens = tokens};
  const auto part = part_of(out, 1, 2);
  EXPECT_EQ(part.tokens.data(), tokens.data() + 1);
  EXPECT_EQ(part.tokens.size(), 2U);
  EXPECT_TRUE(part.labels.empty());
}

template <class Token>
void expect_as_naive(std::mt19937_64& random) {
  const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(random() % n); };
  // Some texts are longer than the blocks in which fields are computed. Eods are close together or
  // far apart.
  const std::int64_t seq_len = 1 + (below(4) == 0 ? below(2000) : below(40));
  const auto rare = static_cast<std::uint64_t>(2 + below(4) * below(200));
  field_options options;
  options.extra_token = below(2) == 0;
  options.reset_position_ids = below(2) == 0;
  options.reset_attention_mask = below(2) == 0;
  options.eod_mask_loss = below(2) == 0;
  const std::int64_t specials[] = {3, 0, -1, 70000, no_token};
  options.eod = specials[below(5)];
  options.pad = specials[below(4)];
  const auto size = static_cast<std::size_t>(seq_len + (options.extra_token ? 1 : 0));
  const std::int64_t real = below(3) == 0 ? below(size + 1) : static_cast<std::int64_t>(size);
  ids whole(size, options.pad);
  std::vector<Token> text(size);
  for (std::int64_t i = 0; i < real; ++i) {
    const auto at = static_cast<std::size_t>(i);
    text[at] = static_cast<Token>(below(rare) == 0 ? 3 : below(60));
    whole[at] = text[at];
  }
  const auto expected = test::naive_fields(whole, options);
  const auto found = test::filled_fields<Token>(text, real, options);
  ASSERT_EQ(found.tokens, expected.tokens);
  ASSERT_EQ(found.labels, expected.labels);
  ASSERT_EQ(found.loss_mask, expected.loss_mask);
  ASSERT_EQ(found.position_ids, expected.position_ids);
  if (seq_len > 40) return;
  whole.resize(static_cast<std::size_t>(seq_len));
  const auto mask = options.reset_attention_mask
                        ? test::attention_mask::by_eod<std::int64_t>(whole, options.eod)
                        : test::attention_mask(seq_len);
  for (std::int64_t i = 0; i < seq_len; ++i) {
    for (std::int64_t j = 0; j < seq_len; ++j) {
      const bool masked = expected.masked[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)];
      ASSERT_EQ(mask(i, j), masked) << i << ' ' << j;
    }
  }
}

TEST(Fields, AreThoseOfANaiveModel) {
  std::mt19937_64 random(test::seed(1));
  for (int i = 0; i < 1000; ++i) {
    SCOPED_TRACE(i);
    expect_as_naive<std::uint16_t>(random);
    expect_as_naive<std::int32_t>(random);
    expect_as_naive<std::int64_t>(random);
    expect_as_naive<std::uint8_t>(random);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace millrace::dataset
