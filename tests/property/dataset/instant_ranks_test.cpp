// SPDX-License-Identifier: Apache-2.0
//
// Tests that the served samples do not depend on the ranks, on restarts, or on changes of the
// number of ranks between restarts.
#include <algorithm>
#include <cstdint>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/detail/instant/instant_order.hpp>

#include "support/paths.hpp"
#include "support/seed.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::dataset {
namespace {

/// A sample, represented by its tokens.
using sample_tokens = std::vector<std::uint16_t>;

class InstantRanks : public testing::Test {
 protected:
  InstantRanks() {
    std::mt19937_64 random(test::seed(1));
    for (int s = 0; s < 3; ++s) {
      test::documents_of<std::uint16_t> documents(20 + random() % 80);
      for (auto& document : documents) {
        document.emplace_back(random() % 40);
        for (auto& token : document.back()) token = static_cast<std::uint16_t>(random());
      }
      documents.push_back({std::vector<std::uint16_t>(9, 1)});  // at least one window
      const std::string name(1, static_cast<char>('a' + s));
      test::write_dataset<std::uint16_t>(folder_ / name, documents);
      sources_.push_back({folder_ / name, "", {}, {}});
      data_.emplace_back(folder_ / name);
    }
  }

  instant_order opened() const {
    return {sources_,
            {.seed = 42,
             .seq_len = 8,
             .segments = {{0, {{0, 5}, {1, 1}}}, {30, {{1, 2}, {2, 3}}}},
             .first_position_of = [](std::int64_t step) { return step * 16; },
             .train_samples = std::nullopt,
             .most_open = 2}};
  }

  sample_tokens read(const instant_order& order, std::int64_t position) const {
    const instant_sample sample = order.at(position);
    std::vector<piece> pieces;
    order.pieces(sample, pieces);
    sample_tokens out;
    const auto& data = data_[static_cast<std::size_t>(sample.source)];
    for (const piece& part : pieces) {
      const auto view = data.sequence(part.sequence, part.first, part.tokens);
      for (std::int64_t i = 0; i < view.size(); ++i) {
        out.push_back(static_cast<std::uint16_t>(view[i]));
      }
    }
    // The pieces must contain exactly the tokens of the window in the stream.
    sample_tokens window(static_cast<std::size_t>(sample.place.tokens));
    data.stream().subview(sample.place.first_token, sample.place.tokens).copy_to(std::span(window));
    EXPECT_EQ(out, window);
    return out;
  }

  test::temp_folder folder_;
  std::vector<instant_source> sources_;
  std::vector<indexed_dataset> data_;
};

TEST_F(InstantRanks, AnyNumberOfRanksServesTheSameSamples) {
  constexpr std::int64_t count = 960;
  const instant_order whole = opened();
  std::vector<sample_tokens> expected;
  for (std::int64_t p = 0; p < count; ++p) expected.push_back(read(whole, p));
  for (const std::int64_t ranks : {1, 2, 3, 4, 8, 16}) {
    std::vector<int> met(count);
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const instant_order own = opened();  // each rank opens its own files
      for (std::int64_t p = rank; p < count; p += ranks) {
        ASSERT_EQ(read(own, p), expected[static_cast<std::size_t>(p)]) << p;
        ++met[static_cast<std::size_t>(p)];
      }
    }
    EXPECT_EQ(met, std::vector<int>(count, 1)) << ranks;
  }
}

TEST_F(InstantRanks, ARestartAnywhereGoesOnAsIfNothingHadHappened) {
  constexpr std::int64_t count = 700;
  const instant_order whole = opened();
  std::vector<sample_tokens> expected;
  for (std::int64_t p = 0; p < count; ++p) expected.push_back(read(whole, p));
  for (std::int64_t k = 0; k < count; ++k) {
    const instant_order again = opened();
    for (std::int64_t p = k; p < std::min(count, k + 5); ++p) {
      ASSERT_EQ(read(again, p), expected[static_cast<std::size_t>(p)]) << k << ' ' << p;
    }
  }
}

TEST_F(InstantRanks, EveryWindowOfAnEpochIsServedOnce) {
  const instant_order order = opened();
  std::map<std::pair<std::int64_t, std::int64_t>, std::set<std::int64_t>> windows;
  for (std::int64_t p = 0; p < 3000; ++p) {
    const instant_sample sample = order.at(p);
    auto& met = windows[std::pair(sample.source, sample.place.epoch)];
    EXPECT_TRUE(met.insert(sample.place.window).second);
  }
  // A source serves complete epochs. Only its last epoch may be incomplete.
  for (const auto& [which, met] : windows) {
    const auto [source, epoch] = which;
    if (!windows.contains({source, epoch + 1})) continue;
    EXPECT_EQ(static_cast<std::int64_t>(met.size()), order.windows(source).windows_per_epoch());
  }
}

}  // namespace
}  // namespace millrace::dataset
