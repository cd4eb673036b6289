// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/instant/window_order.hpp>

#include <cstdint>
#include <limits>
#include <set>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::dataset {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string refusal(std::int64_t tokens, std::int64_t seq_len) {
  try {
    const window_order order("web", tokens, seq_len, 1);
  } catch (const config_error& e) {
    return e.what();
  }
  return "accepted";
}

TEST(WindowOrder, ServesEachWindowOfAnEpochOnce) {
  const window_order order("web", 1003, 10, 1234);
  ASSERT_EQ(order.windows_per_epoch(), 100);
  for (std::int64_t e = 0; e < 5; ++e) {
    std::set<std::int64_t> windows;
    for (std::int64_t i = 0; i < 100; ++i) {
      const window_place place = order.at(100 * e + i);
      EXPECT_EQ(place.epoch, e);
      EXPECT_EQ(place.tokens, 11);
      EXPECT_EQ(place.first_token, order.epoch(e).offset() + 10 * place.window);
      EXPECT_LE(place.first_token + place.tokens, 1003);
      EXPECT_EQ(order.sample_of(e, place.window), 100 * e + i);
      windows.insert(place.window);
    }
    EXPECT_EQ(windows.size(), 100U);
  }
}

// Every epoch except the first one draws an offset. So epochs use different windows, and not only
// different orders of the same windows.
TEST(WindowOrder, DrawsAnOffsetForEachEpochButTheFirst) {
  const window_order order("web", 1003, 10, 1234);  // offsets 0 to 2
  std::set<std::int64_t> offsets;
  for (std::int64_t e = 0; e < 50; ++e) offsets.insert(order.epoch(e).offset());
  EXPECT_EQ(order.epoch(0).offset(), 0);
  EXPECT_EQ(offsets, (std::set<std::int64_t>{0, 1, 2}));

  const window_order full("web", 1001, 10, 1234);  // only one possible offset
  for (std::int64_t e = 0; e < 50; ++e) EXPECT_EQ(full.epoch(e).offset(), 0);
}

TEST(WindowOrder, FindsTheSampleOfAToken) {
  const window_order order("web", 100, 7, 5);  // T = 14, offsets 0 and 1
  for (std::int64_t e = 0; e < 6; ++e) {
    const epoch_remainder rest = order.remainder(e);
    for (std::int64_t token = 0; token < 100; ++token) {
      std::int64_t input = -1;
      std::int64_t label = -1;
      for (std::int64_t k = 14 * e; k < 14 * (e + 1); ++k) {
        const std::int64_t first = order.at(k).first_token;
        if (first <= token && token < first + 7) input = k;
        if (first < token && token <= first + 7) label = k;
      }
      EXPECT_EQ(order.sample_of_input(e, token).value_or(-1), input) << token;
      EXPECT_EQ(order.sample_of_label(e, token).value_or(-1), label) << token;
      EXPECT_EQ(token < rest.head || token >= rest.tail_first, input == -1) << token;
    }
  }
}

TEST(WindowOrder, DependsOnSeedNameAndEpoch) {
  const auto order_of = [](const char* name, std::uint64_t seed, std::int64_t epoch) {
    std::vector<std::int64_t> out;
    const window_order order(name, 1001, 10, seed);
    for (std::int64_t i = 0; i < 100; ++i) out.push_back(order.epoch(epoch).at(i).window);
    return out;
  };
  const auto one = order_of("web", 1, 0);
  EXPECT_EQ(order_of("web", 1, 0), one);
  EXPECT_NE(order_of("web", 2, 0), one);
  EXPECT_NE(order_of("code", 1, 0), one);
  EXPECT_NE(order_of("web", 1, 1), one);
}

TEST(WindowOrder, RefusesWhatHasNoWindow) {
  EXPECT_EQ(refusal(11, 10), "accepted");
  EXPECT_THAT(refusal(10, 10), AllOf(HasSubstr("source web has 10 tokens"), HasSubstr("= 11")));
  EXPECT_THAT(refusal(0, 1), HasSubstr("has 0 tokens"));
  EXPECT_THAT(refusal(5, std::numeric_limits<std::int64_t>::max()),
              HasSubstr("= 9223372036854775808"));
  EXPECT_THAT(refusal(10, 0), HasSubstr("seq_len is 0, expected 1 or more"));
  EXPECT_THAT(refusal(std::numeric_limits<std::int64_t>::max(), 1), HasSubstr("at most 2^62"));
}

}  // namespace
}  // namespace millrace::dataset
