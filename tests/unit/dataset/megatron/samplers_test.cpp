// SPDX-License-Identifier: Apache-2.0
//
// Compares the samplers with models that visit all samples one by one, as Megatron's own loops do.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/detail/megatron/cyclic_sampler.hpp>
#include <millrace/dataset/detail/megatron/range_samplers.hpp>

#include "support/seed.hpp"

namespace millrace::dataset {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::ThrowsMessage;

using batch = std::vector<std::int64_t>;
using batches = std::vector<batch>;

batch listed(sample_run run) {
  batch samples(static_cast<std::size_t>(run.count));
  std::iota(samples.begin(), samples.end(), run.first);
  return samples;
}
batch listed(batch samples) {
  return samples;
}

template <class Sampler>
batches all_of(const Sampler& sampler) {
  batches all;
  for (std::int64_t t = 0; t < sampler.batches(); ++t) all.push_back(listed(sampler.batch(t)));
  return all;
}

std::size_t at(std::int64_t index) {
  return static_cast<std::size_t>(index);
}

/// Returns elements [begin, end) of a list, but only those that exist.
batch slice(const batch& whole, std::int64_t begin, std::int64_t end) {
  const auto size = static_cast<std::int64_t>(whole.size());
  return {whole.begin() + std::min(begin, size), whole.begin() + std::min(end, size)};
}

batches single_model(std::int64_t total, std::int64_t consumed, const data_share& share,
                     bool drop_last) {
  batches all;
  batch block;
  const std::int64_t begin = share.rank * share.micro_batch_size;
  const auto cut = [&] { all.push_back(slice(block, begin, begin + share.micro_batch_size)); };
  for (std::int64_t sample = consumed; sample < total; ++sample) {
    block.push_back(sample);
    if (block.size() == at(share.width())) {
      cut();
      block.clear();
    }
  }
  if (!block.empty() && !drop_last) cut();
  return all;
}

TEST(SingleSampler, EqualsTheModel) {
  for (std::int64_t total = 1; total <= 26; ++total) {
    for (std::int64_t consumed = 0; consumed < total; ++consumed) {
      for (const std::int64_t ranks : {1, 2, 3, 5}) {
        for (const std::int64_t rows : {1, 2, 4}) {
          for (std::int64_t rank = 0; rank < ranks; ++rank) {
            for (const bool drop_last : {true, false}) {
              const data_share share = {rows, ranks, rank};
              ASSERT_EQ(all_of(single_sampler(total, consumed, share, drop_last)),
                        single_model(total, consumed, share, drop_last))
                  << total << ' ' << consumed << ' ' << ranks << ' ' << rows << ' ' << rank;
            }
          }
        }
      }
    }
  }
}

TEST(SingleSampler, ServesEachSampleOnceOverAllRanks) {
  batch served;
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    for (const batch& each : all_of(single_sampler(50, 7, {4, 3, rank}, false))) {
      served.insert(served.end(), each.begin(), each.end());
    }
  }
  std::sort(served.begin(), served.end());
  EXPECT_EQ(served, listed(sample_run{7, 43}));
}

TEST(SingleSampler, GoesOnWhereItWasLeft) {
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const data_share share = {2, 3, rank};
    const single_sampler whole(101, 5, share);
    for (std::int64_t k = 0; k < whole.batches(); ++k) {
      const batches all = all_of(whole);
      EXPECT_EQ(all_of(single_sampler(101, whole.consumed_before(k), share)),
                batches(all.begin() + k, all.end()));
    }
  }
}

// A step contains the same samples for any number of ranks and micro-batches.
TEST(SingleSampler, StepsDoNotDependOnTheRanks) {
  for (const auto& [ranks, rows] : {std::pair{1, 1}, {2, 3}, {6, 2}, {12, 1}, {1, 12}}) {
    const std::int64_t micro_batches = 12 / (ranks * rows);
    for (std::int64_t step = 0; step < 5; ++step) {
      batch taken;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const single_sampler sampler(64, 2, {rows, ranks, rank});
        for (std::int64_t m = 0; m < micro_batches; ++m) {
          const batch each = listed(sampler.batch(step * micro_batches + m));
          taken.insert(taken.end(), each.begin(), each.end());
        }
      }
      std::sort(taken.begin(), taken.end());
      EXPECT_EQ(taken, listed(sample_run{2 + step * 12, 12}));
    }
  }
}

TEST(Samplers, RefuseWhatCannotBeServed) {
  const auto single = [](std::int64_t total, std::int64_t consumed, data_share share) {
    return [=] { return single_sampler(total, consumed, share); };
  };
  const auto says = [](const char* text) { return ThrowsMessage<config_error>(HasSubstr(text)); };
  EXPECT_THAT(single(0, 0, {}), says("total_samples is 0, expected 1 or more"));
  EXPECT_THAT(single(9, 9, {}), says("consumed_samples is 9, expected less than the 9 samples"));
  EXPECT_THAT(single(9, -1, {}), says("consumed_samples is -1"));
  EXPECT_THAT(single(9, 0, {0, 1, 0}), says("micro_batch_size is 0"));
  EXPECT_THAT(single(9, 0, {1, 0, 0}), says("data-parallel ranks is 0"));
  EXPECT_THAT(single(9, 0, {1, 2, 2}), says("data-parallel rank is 2, expected 0 to 1"));
  EXPECT_THAT(single(9, 0, {std::int64_t{1} << 62, 2, 0}), says("beyond 2^63 - 1"));
  EXPECT_THAT([] { return full_validation_sampler(9, {2, 1, 0}); }, says("one sample at a time"));
  EXPECT_THAT(
      [] {
        return hybrid_sampler(9, 0, 5, {2, 1, 0});
      },
      says("global_batch_size is 5, expected a multiple of 2"));
  EXPECT_THAT([] { return hybrid_sampler(9, 0, 0, {2, 1, 0}); }, says("global_batch_size is 0"));
  EXPECT_THAT(
      [] {
        return cyclic_sampler(5, 0, {2, 3, 0});
      },
      says("there are 5 samples, expected 6 or more"));
  EXPECT_THAT(
      [] {
        return cyclic_sampler(20, 20, {2, 3, 0});
      },
      says("which is 2 into its epoch of 18 samples, expected a multiple of 6"));
}

/// MegatronPretrainingRandomSampler, written with lists as in Megatron.
batches cyclic_model(std::int64_t total, std::int64_t& consumed, const data_share& share,
                     bool data_sharding) {
  const std::int64_t b = share.micro_batch_size;
  const std::int64_t active = total - total % share.width();
  const auto epoch = static_cast<std::uint32_t>(consumed / active);
  const std::int64_t current = consumed % active;
  const auto randperm = [&](std::int64_t n) {
    batch order = listed(sample_run{0, n});
    std::mt19937 draws(epoch);
    for (std::int64_t i = 0; i < n - 1; ++i) {
      const auto step = static_cast<std::int64_t>(draws()) % (n - i);
      std::swap(order[at(i)], order[at(i + step)]);
    }
    return order;
  };
  batch mine;
  if (data_sharding) {
    const std::int64_t bucket = total / share.width() * b;
    const batch order = randperm(bucket);
    for (std::int64_t i = current / share.ranks; i < bucket; ++i) {
      mine.push_back(share.rank * bucket + order[at(i)]);
    }
  } else {
    const std::int64_t full = total / b * b;
    const batch order = randperm(full);
    for (std::int64_t i = current + share.rank; i < full; i += share.ranks) {
      mine.push_back(order[at(i)]);
    }
  }
  batches all;
  batch open;
  for (const std::int64_t sample : mine) {
    open.push_back(sample);
    if (open.size() == at(b)) {
      consumed += share.width();
      all.push_back(open);
      open.clear();
    }
  }
  return all;
}

TEST(CyclicSampler, EqualsTheModelOverPasses) {
  std::mt19937_64 random(test::seed(5));
  int uneven = 0;
  for (int round = 0; round < 600; ++round) {
    const std::int64_t ranks = 1 + static_cast<std::int64_t>(random() % 5);
    const std::int64_t rows = 1 + static_cast<std::int64_t>(random() % 4);
    const std::int64_t width = ranks * rows;
    const std::int64_t total = width + static_cast<std::int64_t>(random() % 60);
    const std::int64_t active = total - total % width;
    const std::int64_t steps = static_cast<std::int64_t>(random() % 40);
    const std::int64_t start = steps * width / active * active + steps * width % active;
    for (const bool sharding : {true, false}) {
      std::vector<std::size_t> lengths;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const data_share share = {rows, ranks, rank};
        std::int64_t consumed = start;
        cyclic_sampler ours(total, start, share, sharding);
        for (int pass = 0; pass < 3; ++pass) {
          const batches expected = cyclic_model(total, consumed, share, sharding);
          ASSERT_FALSE(expected.empty());
          ASSERT_EQ(all_of(ours), expected) << total << ' ' << start << ' ' << ranks << ' ' << rows;
          ASSERT_EQ(ours.consumed_before(ours.batches()), consumed);
          ours = ours.next_pass();
          if (pass == 0) lengths.push_back(expected.size());
        }
      }
      uneven += lengths.front() != lengths.back() ? 1 : 0;
    }
  }
  EXPECT_GT(uneven, 20) << "of 600 unsharded rounds";
}

TEST(CyclicSampler, ServesAShardEachAndEachSampleOnceAnEpoch) {
  const std::int64_t total = 65;  // 60 in whole micro-batches of 3 ranks
  for (const bool sharding : {true, false}) {
    batch served;
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      for (const batch& each : all_of(cyclic_sampler(total, 120, {4, 3, rank}, sharding))) {
        served.insert(served.end(), each.begin(), each.end());
        for (const std::int64_t sample : each) {
          EXPECT_TRUE(!sharding || sample / 20 == rank) << sample << " of rank " << rank;
        }
      }
    }
    std::sort(served.begin(), served.end());
    if (sharding) {
      EXPECT_EQ(served, listed(sample_run{0, 60}));
    } else {
      EXPECT_EQ(std::adjacent_find(served.begin(), served.end()), served.end());
      EXPECT_GE(served.size(), 60U);
    }
  }
}

TEST(CyclicSampler, GoesOnWhereItWasLeft) {
  for (const bool sharding : {true, false}) {
    for (std::int64_t rank = 0; rank < 3; ++rank) {
      const data_share share = {2, 3, rank};
      // With 43 samples, all ranks have equally many batches, with and without sharding. If the
      // numbers differ, a resume in Megatron itself serves other samples.
      const cyclic_sampler pass(43, 0, share, sharding);
      batches whole = all_of(pass);
      const batches second = all_of(pass.next_pass());
      whole.insert(whole.end(), second.begin(), second.end());
      for (std::int64_t k = 0; k < static_cast<std::int64_t>(whole.size()); ++k) {
        const cyclic_sampler resumed(43, k * share.width(), share, sharding);
        batches rest = all_of(resumed);
        if (rest.size() < whole.size() - at(k)) {
          const batches more = all_of(resumed.next_pass());
          rest.insert(rest.end(), more.begin(), more.end());
        }
        rest.resize(whole.size() - at(k));
        EXPECT_EQ(rest, batches(whole.begin() + k, whole.end())) << "rank " << rank << " at " << k;
      }
    }
  }
}

TEST(FullValidationSampler, DealsSamplesOut) {
  for (std::int64_t total = 1; total < 20; ++total) {
    for (std::int64_t ranks = 1; ranks < 7; ++ranks) {
      std::int64_t most = 0;
      batch served;
      for (std::int64_t rank = 0; rank < ranks; ++rank) {
        const full_validation_sampler sampler(total, {1, ranks, rank});
        batches expected;
        for (std::int64_t sample = rank; sample < total; sample += ranks)
          expected.push_back({sample});
        EXPECT_EQ(all_of(sampler), expected);
        most = std::max(most, sampler.batches());
        for (const batch& each : expected) served.push_back(each.front());
      }
      std::sort(served.begin(), served.end());
      EXPECT_EQ(served, listed(sample_run{0, total}));
      EXPECT_EQ(full_validation_sampler(total, {1, ranks, 0}).eval_iterations(), most);
    }
  }
}

TEST(HybridSampler, TakesAGlobalBatchAtATime) {
  const hybrid_sampler sampler(26, 0, 12, {2, 3, 1});
  EXPECT_THAT(all_of(sampler), ElementsAre(ElementsAre(2, 3, 8, 9), ElementsAre(14, 15, 20, 21)));
  EXPECT_EQ(sampler.consumed_before(1), 12);
  // The expected batches are micro-batches of the `single` sampler, joined.
  for (std::int64_t rank = 0; rank < 3; ++rank) {
    const data_share share = {2, 3, rank};
    const batches micro = all_of(single_sampler(100, 10, share));
    batches joined;
    for (std::size_t m = 0; m + 3 <= micro.size(); m += 3) {
      joined.emplace_back();
      for (std::size_t k = 0; k < 3; ++k) {
        joined.back().insert(joined.back().end(), micro[m + k].begin(), micro[m + k].end());
      }
    }
    EXPECT_EQ(all_of(hybrid_sampler(100, 10, 18, share)), joined);
  }
}

}  // namespace
}  // namespace millrace::dataset
