// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/gpt_order.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <random>
#include <set>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace millrace::dataset {
namespace {

using testing::HasSubstr;
using lengths_span = formats::unaligned_span<std::int32_t>;

lengths_span view(const std::vector<std::int32_t>& lengths) {
  return lengths_span(std::as_bytes(std::span(lengths)));
}

gpt_order order_of(const gpt_request& request, const std::vector<std::int32_t>& lengths,
                   int threads = 1) {
  const sequence_range all{0, static_cast<std::int64_t>(lengths.size())};
  const gpt_plan plan = plan_gpt_index(request, all, count_tokens(view(lengths), all, 0), "data");
  return {plan, view(lengths), view_of(build_gpt_index(plan, view(lengths), "data", threads))};
}

std::int64_t below(std::mt19937& random, std::int64_t limit) {
  return static_cast<std::int64_t>(random()) % limit;
}

std::vector<std::int32_t> random_lengths(std::mt19937& random, int count) {
  std::vector<std::int32_t> lengths;
  lengths.reserve(static_cast<std::size_t>(count) + 1);
  for (int i = 0; i < count; ++i) {
    lengths.push_back(random() % 5 == 0 ? 0 : static_cast<std::int32_t>(random() % 30));
  }
  lengths.push_back(40);
  return lengths;
}

using token = std::pair<std::int64_t, std::int64_t>;  // sequence, token index in it

std::vector<token> tokens_of(const std::vector<piece>& pieces) {
  std::vector<token> out;
  for (const piece& p : pieces) {
    for (std::int64_t i = 0; i < p.tokens; ++i) out.emplace_back(p.sequence, p.first + i);
  }
  return out;
}

/// To make samples, the sequences are joined in the order of the document index. The result is cut
/// after every L tokens.
TEST(GptOrder, CutsTheShuffledSequencesIntoSamples) {
  std::mt19937 random(3);
  for (int round = 0; round < 200; ++round) {
    const auto lengths = random_lengths(random, static_cast<int>(random() % 30));
    const gpt_request request{.sequence_length = 2 + below(random, 20),
                              .num_samples = below(random, 60),
                              .part = split_part::valid,
                              .random_seed = static_cast<std::uint32_t>(random()),
                              .add_extra_token = random() % 2 == 0,
                              .drop_last_partial_validation_sequence = true};
    const gpt_order order = order_of(request, lengths, 1 + round % 2);
    std::vector<token> stream;
    for (std::int64_t i = 0; i < order.plan().document_entries(); ++i) {
      const std::int64_t sequence = order.index().document[i];
      for (std::int64_t t = 0; t < lengths[static_cast<std::size_t>(sequence)]; ++t) {
        stream.emplace_back(sequence, t);
      }
    }
    std::set<std::int64_t> seen;
    for (std::int64_t k = 0; k < order.size(); ++k) {
      const std::int64_t j = order.index().shuffle[k];
      seen.insert(j);
      const auto start = stream.begin() + j * request.sequence_length;
      ASSERT_EQ(tokens_of(order.sample(k)),
                std::vector<token>(start, start + order.sample_tokens()))
          << "round " << round << ", sample " << k;
    }
    EXPECT_EQ(static_cast<std::int64_t>(seen.size()), order.size());
  }
}

TEST(GptOrder, FindsTheSamplesOfAToken) {
  std::mt19937 random(4);
  for (int round = 0; round < 60; ++round) {
    const auto lengths = random_lengths(random, 12);
    const gpt_request request{.sequence_length = 2 + below(random, 20),
                              .num_samples = below(random, 60),
                              .part = split_part::valid,
                              .add_extra_token = random() % 2 == 0,
                              .drop_last_partial_validation_sequence = random() % 2 == 0};
    if (request.drop_last_partial_validation_sequence == false && lengths.back() == 0) continue;
    gpt_order order = [&] {
      for (gpt_request again = request;; ++again.random_seed) {
        try {
          return order_of(again, lengths);
        } catch (const config_error&) {  // the last sequence is empty
        }
      }
    }();
    for (std::size_t s = 0; s < lengths.size(); ++s) {
      for (std::int64_t t = 0; t < lengths[s]; ++t) {
        std::vector<std::int64_t> expected;
        for (std::int64_t k = 0; k < order.size(); ++k) {
          const auto tokens = tokens_of(order.sample(k));
          const token wanted{static_cast<std::int64_t>(s), t};
          if (std::ranges::find(tokens, wanted) != tokens.end()) expected.push_back(k);
        }
        ASSERT_EQ(order.samples_with(static_cast<std::int64_t>(s), t), expected)
            << "round " << round << ", token " << t << " of " << s;
      }
    }
    // Compares two lookups with a search over all samples. One lookup returns the samples with
    // tokens of some sequences. The other returns the tokens after the last sample.
    const sequence_range some{2, 2 + below(random, 8)};
    std::vector<std::int64_t> expected;
    std::int64_t inputs = 0;
    for (std::int64_t k = 0; k < order.size(); ++k) {
      const auto tokens = tokens_of(order.sample(k));
      inputs += std::min<std::int64_t>(std::ssize(tokens), request.sequence_length);
      if (std::ranges::any_of(tokens, [&](const token& t) {
            return some.first <= t.first && t.first < some.last;
          })) {
        expected.push_back(k);
      }
    }
    ASSERT_EQ(order.samples_with(some), expected) << "round " << round;
    ASSERT_EQ(std::ssize(tokens_of(order.behind_last_sample())), order.plan().tokens() - inputs)
        << "round " << round;
  }
}

TEST(GptOrder, SaysHowMuchOfAPartialSampleIsPadding) {
  const std::vector<std::int32_t> lengths = {7, 7, 9};
  const gpt_request request{.sequence_length = 10,
                            .part = split_part::valid,
                            .drop_last_partial_validation_sequence = false};
  const gpt_order order = order_of(request, lengths);
  ASSERT_EQ(order.size(), 3);
  std::vector<piece> pieces;
  EXPECT_EQ(order.unshuffled_sample(0, pieces), 0);
  // The sample has 11 tokens: tokens 20 to 22 of the dataset, and 8 padding tokens.
  EXPECT_EQ(order.unshuffled_sample(2, pieces), 8);
  EXPECT_EQ(tokens_of(pieces).size(), 3U);
}

// A partial sample before an empty sequence is refused. Of 20 sequences, only the first is not
// empty, so most shuffles end in an empty sequence.
TEST(GptOrder, RefusesAPartialSampleBeforeAnEmptySequence) {
  std::vector<std::int32_t> lengths(20, 0);
  lengths[0] = 15;
  int refused = 0;
  for (std::uint32_t seed = 0; seed < 300; ++seed) {
    const gpt_request request{.sequence_length = 10,
                              .part = split_part::valid,
                              .random_seed = seed,
                              .drop_last_partial_validation_sequence = false};
    try {
      EXPECT_EQ(order_of(request, lengths, 1 + static_cast<int>(seed % 2)).index().document[19], 0);
    } catch (const config_error& e) {
      ++refused;
      EXPECT_THAT(e.what(), HasSubstr("use another seed"));
    }
  }
  EXPECT_GT(refused, 200);
  EXPECT_LT(refused, 300);
}

/// Alters an index and then queries it in several ways. Each query must throw or return pieces that
/// exist.
class DamagedIndex : public testing::Test {
 protected:
  static constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  static constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

  void expect_there(const std::vector<piece>& pieces) const {
    for (const piece& p : pieces) {
      ASSERT_TRUE(0 <= p.sequence && p.sequence < std::ssize(lengths_) && 0 <= p.first &&
                  0 <= p.tokens);
      ASSERT_LE(p.first + p.tokens, lengths_[static_cast<std::size_t>(p.sequence)]);
    }
  }

  template <class Access>
  void expect_sound(const Access& access) {
    try {
      access();
    } catch (const format_error&) {
      ++refused_;
    }
  }

  void walk(const gpt_order& order) {
    for (std::int64_t k = 0; k < order.size(); ++k) {
      expect_sound([&] { expect_there(order.sample(k)); });
    }
    expect_sound([&] { expect_there(order.behind_last_sample()); });
    const auto expect_samples = [&](const std::vector<std::int64_t>& samples) {
      for (const std::int64_t k : samples) ASSERT_TRUE(0 <= k && k < order.size()) << k;
    };
    for (std::int64_t s = 0; s < std::ssize(lengths_); ++s) {
      expect_sound([&] { expect_samples(order.samples_with({s, s + 1})); });
      if (lengths_[static_cast<std::size_t>(s)] == 0) continue;
      expect_sound([&] { expect_samples(order.samples_with(s, 0)); });
    }
  }

  /// Sets each element of each column to each of the given values, one at a time.
  void alter_all(gpt_plan plan, const std::vector<std::int64_t>& values) {
    for (int column = 0; column < 3; ++column) {
      for (int at = 0;; ++at) {
        bool inside = true;
        for (const std::int64_t value : values) {
          gpt_index index = build_gpt_index(plan, view(lengths_), "data");
          const auto alter = [&](auto& array) {
            using number = typename std::remove_reference_t<decltype(array.numbers())>::value_type;
            inside = static_cast<std::size_t>(at) < array.numbers().size();
            if (inside) array.numbers()[static_cast<std::size_t>(at)] = static_cast<number>(value);
          };
          if (column == 0) alter(index.document);
          if (column == 1) std::visit(alter, index.sample);
          if (column == 2) std::visit(alter, index.shuffle);
          if (!inside) break;
          walk(gpt_order(plan, view(lengths_), view_of(std::move(index))));
        }
        if (!inside) break;
      }
    }
  }

  std::vector<std::int32_t> lengths_ = {7, 0, 12, 5, 9, 1};
  gpt_plan plan_ = plan_gpt_index({.sequence_length = 4, .num_samples = 10}, {0, 6}, 34, "data");
  int refused_ = 0;
};

TEST_F(DamagedIndex, GivesNothingThatIsNotThere) {
  alter_all(plan_, {-1, 0, 3, 6, 100, 2147483647, -2147483647 - 1});
  EXPECT_GT(refused_, 300);
}

// If indices with 64-bit entries are damaged, no query returns pieces that do not exist, even if
// sums of damaged values overflow.
TEST_F(DamagedIndex, GivesNothingThatIsNotThereOfWideNumbersEither) {
  plan_.wide_sample_index = plan_.wide_shuffle_index = true;
  alter_all(plan_, {-1, 3, 100, most, most - 1, least, least + 1});
  EXPECT_GT(refused_, 300);
}

// A search for a token reads rows of the sample index but not whole samples. The error still names
// the invalid row.
TEST_F(DamagedIndex, NamesTheRowThatCannotBe) {
  gpt_index index = build_gpt_index(plan_, view(lengths_), "data");
  for (std::int32_t& number : std::get<0>(index.sample).numbers()) number = -2000000;
  gpt_index_view damaged = view_of(std::move(index));
  damaged.sample_path = "x-sample_index.npy";
  damaged.sample_offset = 128;
  const gpt_order order(plan_, view(lengths_), damaged);
  try {
    (void)order.samples_with(3, 0);
    ADD_FAILURE() << "accepted";
  } catch (const format_error& e) {
    EXPECT_EQ(e.path(), "x-sample_index.npy");
    EXPECT_EQ(e.offset(), 128 + 8 * static_cast<std::uint64_t>(order.size()));
    EXPECT_THAT(e.what(), HasSubstr("(-2000000, -2000000)"));
  }
}

TEST(CountTokens, RefusesANegativeLength) {
  const std::vector<std::int32_t> lengths = {3, -1, 4};
  EXPECT_EQ(count_tokens(view(lengths), {2, 3}, 34), 4);
  try {
    (void)count_tokens(view(lengths), {0, 3}, 34);
    FAIL() << "accepted";
  } catch (const format_error& e) {
    EXPECT_EQ(e.offset(), 38U);
    EXPECT_THAT(e.what(), HasSubstr("length of sequence 1 is -1"));
  }
}

}  // namespace
}  // namespace millrace::dataset
