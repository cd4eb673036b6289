// SPDX-License-Identifier: Apache-2.0
//
// Compares the loader with a simple model, for random datasets, options and callers.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/loader/batch_loader.hpp>

#include "support/seed.hpp"
#include "unit/loader/stored_tokens.hpp"

namespace millrace::loader {
namespace {

/// Draws random numbers and options, and prints the seed.
class choices {
 public:
  explicit choices(std::uint64_t usual_seed) : engine_(test::seed(usual_seed)) {}
  std::int64_t from_to(std::int64_t least, std::int64_t most) {
    return std::uniform_int_distribution<std::int64_t>(least, most)(engine_);
  }
  loader_options options(std::int64_t tokens) {
    loader_options o = {.batch_size = from_to(1, 6),
                        .seq_len = from_to(1, std::min<std::int64_t>(tokens - 1, 40)),
                        .world_size = from_to(1, 5),
                        .look_ahead = from_to(1, 4),
                        .prefetch_samples = from_to(0, 20),
                        .threads = from_to(1, 3)};
    o.rank = from_to(0, o.world_size - 1);
    o.consumed_samples = from_to(0, 1) * from_to(0, (tokens - 1) / o.seq_len);
    return o;
  }

 private:
  std::mt19937_64 engine_;
};

// The caller keeps some batches, releases them in any order and on any thread, and stops at any
// time. It must get the same batches as from the model, and the batches that it keeps must never
// change.
TEST(Loader, ServesAnyCallerWhatTheModelSays) {
  choices random(11);
  for (int round = 0; round < 120; ++round) {
    const std::int64_t tokens = random.from_to(2, 3000);
    const test::stored_tokens<std::int32_t> stored(tokens);
    const loader_options options = random.options(tokens);
    SCOPED_TRACE(testing::Message() << "round " << round << ": " << tokens << " tokens, batch_size "
                                    << options.batch_size << ", seq_len " << options.seq_len
                                    << ", rank " << options.rank << " of " << options.world_size
                                    << ", consumed " << options.consumed_samples << ", look_ahead "
                                    << options.look_ahead << ", threads " << options.threads);
    const auto all = static_cast<std::int64_t>(stored.samples(options).size());
    const std::int64_t stop = random.from_to(0, 3) == 0 ? random.from_to(0, all) : all;

    std::vector<batch> held;
    std::jthread elsewhere;  // destroys batches, one at a time
    {
      batch_loader loader(stored.data(), options);
      ASSERT_EQ(loader.micro_batches(), all);
      for (std::int64_t m = 0; m < stop; ++m) {
        const std::int64_t most = random.from_to(0, options.look_ahead + options.threads);
        while (static_cast<std::int64_t>(held.size()) > most) {
          std::swap(held[static_cast<std::size_t>(random.from_to(0, std::ssize(held) - 1))],
                    held.back());
          stored.expect_batch(held.back(), options, stored.number_of(held.back(), options));
          if (random.from_to(0, 3) == 0) {
            elsewhere = std::jthread([b = std::move(held.back())] {});
          }
          held.pop_back();
        }
        // `elsewhere` may still keep a batch. If all slots are in use for this reason, wait for
        // that thread.
        if (std::ssize(held) == options.look_ahead + options.threads && elsewhere.joinable())
          elsewhere.join();
        std::optional<batch> next = loader.next();
        ASSERT_TRUE(next.has_value());
        ASSERT_EQ(stored.number_of(*next, options), m);
        held.push_back(std::move(*next));
      }
      if (stop == all) {
        EXPECT_FALSE(loader.next().has_value());
      }
    }
    for (const batch& b : held) stored.expect_batch(b, options, stored.number_of(b, options));
  }
}

// Divides a run into several parts, each with another number of ranks and rows per batch. Every
// sample is served once and in order. Only the samples that do not fill the last step are left out.
TEST(Loader, ServesEverySampleOnceHoweverTheRunIsCut) {
  choices random(12);
  for (int round = 0; round < 40; ++round) {
    const std::int64_t tokens = random.from_to(500, 3000);
    const test::stored_tokens<std::uint16_t> stored(tokens);
    const std::int64_t seq_len = random.from_to(1, 9);

    std::int64_t consumed = 0;
    for (int piece = 0; piece < 5; ++piece) {
      loader_options options = random.options(tokens);
      options.seq_len = seq_len;
      options.consumed_samples = consumed;
      SCOPED_TRACE(testing::Message() << "round " << round << ", from sample " << consumed);
      const auto all = static_cast<std::int64_t>(stored.samples(options).size());
      const std::int64_t steps = random.from_to(0, all);
      std::vector<std::int64_t> starts(static_cast<std::size_t>(steps * options.world_size));
      for (options.rank = 0; options.rank < options.world_size; ++options.rank) {
        batch_loader loader(stored.data(), options);
        for (std::int64_t m = 0; m < steps; ++m) {
          const auto batch = loader.next();
          ASSERT_TRUE(batch.has_value());
          if (m % 16 == 0) stored.expect_batch(*batch, options, m);
          starts[static_cast<std::size_t>(m * options.world_size + options.rank)] =
              batch->first_sample();
        }
        ASSERT_EQ(loader.consumed_samples(),
                  consumed + steps * options.world_size * options.batch_size);
      }
      for (const std::int64_t start : starts) {
        ASSERT_EQ(start, consumed);
        consumed += options.batch_size;
      }
    }
  }
}

}  // namespace
}  // namespace millrace::loader
