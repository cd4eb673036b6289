// SPDX-License-Identifier: Apache-2.0
//
// The instant order is a file format: a run may be resumed with it years later. These values are
// from tests/golden/instant/vectors.json, which comes from a model that was written only from
// formats/spec/instant_order.md. If a check of these values fails, the code is wrong.
#include <cstdint>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/instant/blend_slots.hpp>
#include <millrace/dataset/detail/instant/feistel.hpp>
#include <millrace/dataset/detail/instant/order_keys.hpp>
#include <millrace/dataset/detail/instant/window_order.hpp>

namespace millrace::dataset {
namespace {

using row = std::vector<std::int64_t>;

TEST(GoldenOrder, KeysAreFrozen) {
  EXPECT_EQ(mix64(0), 0U);
  EXPECT_EQ(mix64(1), 0x5692161d100b05e5U);
  EXPECT_EQ(draw(0, 0), 0xe220a8397b1dcdafU);  // the first number of splitmix64 seeded with 0
  EXPECT_EQ(draw(0, 1), 0x6e789e6aa1b965f4U);
  EXPECT_EQ(name_hash(""), 0xcbf29ce484222325U);
  EXPECT_EQ(name_hash("foobar"), 0x85944171f73967e8U);  // test vector published for FNV
}

TEST(GoldenOrder, PermutationsAreFrozen) {
  const struct {
    shuffle_of what;
    const char* name;
    std::uint64_t seed;
    std::uint64_t epoch;
    std::int64_t n;
    row first;
  } cases[] = {
      {shuffle_of::windows, "web", 0, 0, 10, {4, 7, 3, 6, 2, 9, 0, 5, 8, 1}},
      {shuffle_of::windows,
       "web_text_document",
       1234,
       0,
       1000,
       {601, 260, 94, 247, 193, 302, 762, 469, 505, 217}},
      {shuffle_of::windows,
       "web_text_document",
       1234,
       1,
       1000,
       {71, 759, 349, 694, 282, 647, 635, 367, 568, 872}},
      {shuffle_of::windows,
       "web_text_document",
       1234,
       7,
       2147483659,
       {968570019, 1306462318, 822163146, 2144513895, 20424589, 679140767, 167049844, 1610456969,
        1619464618, 860774664}},
      {shuffle_of::bins,
       "code",
       18446744073709551615U,
       3,
       300,
       {265, 263, 245, 176, 120, 3, 46, 201, 40, 108}},
      {shuffle_of::documents,
       "",
       42,
       0,
       1000000000,
       {579968549, 25056390, 77751280, 322923505, 865630864, 762843159, 400167145, 800858943,
        375799506, 361853893}},
  };
  for (const auto& c : cases) {
    const feistel order(c.n,
                        keys_of(absorb(order_hash(c.what, c.seed, name_hash(c.name)), c.epoch)));
    row found;
    for (std::int64_t i = 0; i < 10; ++i) found.push_back(order(i));
    EXPECT_EQ(found, c.first) << c.name << ' ' << c.epoch << ' ' << c.n;
  }
}

TEST(GoldenOrder, WindowsAreFrozen) {
  const struct {
    const char* name;
    std::uint64_t seed;
    std::int64_t tokens, seq_len, k, epoch, window, first_token;
  } cases[] = {
      {"web", 1, 1000000000000, 4096, 0, 0, 192753076, 789516599296},
      {"web", 1, 1000000000000, 4096, 1, 0, 197301863, 808148430848},
      {"web", 1, 1000000000000, 4096, 244140623, 0, 77658755, 318090260480},
      {"web", 1, 1000000000000, 4096, 244140624, 1, 203369234, 833000383061},
      {"web", 1, 1000000000000, 4096, 1220703123, 5, 127869529, 523753592992},
      {"books", 99, 123457, 100, 0, 0, 720, 72000},
      {"books", 99, 123457, 100, 1, 0, 147, 14700},
      {"books", 99, 123457, 100, 1233, 0, 1053, 105300},
      {"books", 99, 123457, 100, 1234, 1, 273, 27335},
      {"books", 99, 123457, 100, 6173, 5, 820, 82035},
  };
  for (const auto& c : cases) {
    const window_order order(c.name, c.tokens, c.seq_len, c.seed);
    EXPECT_EQ(order.at(c.k), (window_place{c.epoch, c.window, c.first_token, c.seq_len + 1}))
        << c.name << ' ' << c.k;
  }
}

TEST(GoldenOrder, BlendsAreFrozen) {
  const struct {
    std::vector<double> weights;
    row slots;
    row first;
  } cases[] = {
      {{0.5, 0.3, 0.2}, {32768, 19661, 13107}, {0, 1, 0, 2, 0, 1, 0, 2, 1, 0, 0, 1,
                                                0, 2, 0, 1, 0, 2, 1, 0, 0, 1, 0, 2}},
      {{1, 1, 1, 1}, {16384, 16384, 16384, 16384}, {0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3,
                                                    0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3}},
      {{0.7, 0.2, 0.09, 0.01}, {45875, 13107, 5898, 656}, {0, 0, 1, 0, 0, 0, 1, 0, 2, 0, 0, 0,
                                                           1, 0, 0, 0, 1, 0, 0, 2, 0, 0, 1, 0}},
  };
  for (const auto& c : cases) {
    const blend_slots blend(c.weights);
    row slots;
    for (std::int64_t s = 0; s < blend.source_count(); ++s) slots.push_back(blend.slots(s));
    EXPECT_EQ(slots, c.slots);
    row first;
    for (std::int64_t p = 0; p < 24; ++p) first.push_back(blend.at(p).source);
    EXPECT_EQ(first, c.first);
  }
}

}  // namespace
}  // namespace millrace::dataset
