// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/run.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <millrace/dataset/sampler.hpp>
#include <millrace/dataset/where.hpp>

#include "unit/dataset/run/stored_run.hpp"

namespace millrace::dataset {
namespace {

class StoredRun : public testing::Test {
 protected:
  StoredRun() {
    std::mt19937 random(3);
    data_ =
        std::make_shared<const indexed_dataset>(test::store_documents(folder_ / "web", random, 30));
  }

  /// Finds the pieces by walking over all sequences.
  std::vector<piece> naive_pieces(std::int64_t k, std::int64_t seq_len) const {
    std::vector<piece> pieces;
    const std::int64_t first = k * seq_len;
    const std::int64_t last = first + seq_len + 1;
    std::int64_t begin = 0;
    for (std::int64_t s = 0; s < data_->sequence_count(); ++s) {
      const std::int64_t end = begin + data_->sequence_length(s);
      const std::int64_t from = std::max(first, begin);
      const std::int64_t to = std::min(last, end);
      if (from < to) pieces.push_back({s, from - begin, to - from});
      begin = end;
    }
    return pieces;
  }

  test::temp_folder folder_{test::quick_folder()};
  std::shared_ptr<const indexed_dataset> data_;
};

TEST_F(StoredRun, CutsTheStreamIntoWindows) {
  for (const std::int64_t seq_len : {1, 7, 40}) {
    const stored_run order(data_, seq_len);
    ASSERT_EQ(order.end(), (data_->token_count() - 1) / seq_len);
    std::vector<piece> pieces;
    sample_text text;
    for (std::int64_t k = 0; k < order.end(); ++k) {
      ASSERT_EQ(order.at(k), (source_sample{0, k}));
      ASSERT_EQ(order.pieces({0, k}, pieces), 0);
      ASSERT_EQ(pieces, naive_pieces(k, seq_len)) << k;
      order.text_of(k, true, text);
      ASSERT_EQ(text.parts.size(), 1U);
      ASSERT_EQ(text.parts[0].from.offset, static_cast<std::uint64_t>(2 * k * seq_len));
      ASSERT_EQ(text.parts[0].from.bytes, static_cast<std::uint64_t>(2 * seq_len + 2));
      ASSERT_EQ(text.boundaries.back(), seq_len);
    }
    EXPECT_EQ(order.taken(0, 3), 3);
  }
}

TEST_F(StoredRun, FindsTheWindowsOfSequences) {
  const stored_run order(data_, 7);
  for (std::int64_t s = 0; s < data_->sequence_count(); ++s) {
    for (const std::int64_t before : {order.end(), order.end() / 2}) {
      std::vector<std::int64_t> expected;
      for (std::int64_t k = 0; k < before; ++k) {
        const auto pieces = naive_pieces(k, 7);
        if (std::ranges::any_of(pieces, [&](const piece& p) { return p.sequence == s; })) {
          expected.push_back(k);
        }
      }
      ASSERT_EQ(order.positions_with(0, {s, s + 1}, before), expected) << "sequence " << s;
    }
  }
}

TEST_F(StoredRun, IsAudited) {
  const stored_run order(data_, 7);
  const sampler ranks(order.end(), {.world_size = 2});
  const auto ledgers = audit_run(order, ranks, 0, ranks.end_of_whole_steps());
  ASSERT_EQ(ledgers.size(), 1U);
  EXPECT_TRUE(ledgers[0].sound());
  ASSERT_EQ(ledgers[0].left_out.size(), 1U);
  EXPECT_EQ(ledgers[0].left_out[0].first, "after the last window");
  EXPECT_EQ(ledgers[0].left_out[0].second, data_->token_count() - 7 * order.end());
}

TEST_F(StoredRun, RefusesADatasetOfLessThanAWindow) {
  EXPECT_THROW(stored_run(data_, data_->token_count()), config_error);
  EXPECT_THROW(stored_run(*data_, 0), config_error);
}

}  // namespace
}  // namespace millrace::dataset
