// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <gtest/gtest.h>

#include <millrace/dataset/indexed_dataset.hpp>
#include <millrace/loader/batch.hpp>
#include <millrace/loader/options.hpp>

#include "support/paths.hpp"
#include "unit/dataset/write_dataset.hpp"

namespace millrace::test {

/// Returns the value of token i. The values cover the whole range of T, and no two windows are
/// equal.
template <class T>
T token_at(std::int64_t i) {
  // The factor is odd and large. So neighboring values differ in every byte, and the period is as
  // long as T allows.
  return static_cast<T>(static_cast<std::uint64_t>(i + 1) * 0x9E3779B97F4A7C15u >> 7);
}

/// A stored dataset of one sequence, and the output that a loader must give for it. The output is
/// computed in the simplest way: samples are dealt out to the ranks one at a time.
template <class T = std::uint16_t>
class stored_tokens {
 public:
  explicit stored_tokens(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) tokens_.push_back(token_at<T>(i));
    write_dataset<T>(folder_ / "data", {{tokens_}});
    data_.emplace(folder_ / "data");
  }

  const dataset::indexed_dataset& data() const { return *data_; }

  /// Closes the dataset. Batches that were already served must stay valid without it.
  void close() { data_.reset(); }

  /// Returns the index of the micro-batch `batch`, counted from the start of a run with these
  /// options.
  static std::int64_t number_of(const loader::batch& batch, const loader::loader_options& options) {
    return (batch.first_sample() - options.consumed_samples - options.rank * options.batch_size) /
           (options.world_size * options.batch_size);
  }

  /// Returns the samples of each micro-batch of the rank in `options`.
  std::vector<std::vector<std::int64_t>> samples(const loader::loader_options& options) const {
    std::vector<std::vector<std::int64_t>> dealt;
    const auto count = (static_cast<std::int64_t>(tokens_.size()) - 1) / options.seq_len;
    const std::int64_t step = options.world_size * options.batch_size;
    for (std::int64_t next = options.consumed_samples; next + step <= count;) {
      dealt.emplace_back();
      for (std::int64_t rank = 0; rank < options.world_size; ++rank) {
        for (std::int64_t row = 0; row < options.batch_size; ++row, ++next) {
          if (rank == options.rank) dealt.back().push_back(next);
        }
      }
    }
    return dealt;
  }

  /// Fails the test if the batch is not micro-batch m of a run with these options.
  void expect_batch(const loader::batch& batch, const loader::loader_options& options,
                    std::int64_t m) const {
    SCOPED_TRACE(testing::Message() << "micro-batch " << m << " of rank " << options.rank);
    const auto rows = samples(options).at(static_cast<std::size_t>(m));
    EXPECT_EQ(batch.first_sample(), rows.front());
    EXPECT_TRUE(std::ranges::equal(batch.positions(), rows));

    std::vector<std::int64_t> tokens, labels;
    for (const std::int64_t sample : rows) {
      for (std::int64_t i = sample * options.seq_len; i < (sample + 1) * options.seq_len; ++i) {
        tokens.push_back(static_cast<std::int64_t>(tokens_.at(static_cast<std::size_t>(i))));
        labels.push_back(static_cast<std::int64_t>(tokens_.at(static_cast<std::size_t>(i + 1))));
      }
    }
    EXPECT_TRUE(std::ranges::equal(batch.tokens(), tokens));
    EXPECT_TRUE(std::ranges::equal(batch.labels(), labels));
  }

 private:
  temp_folder folder_;
  std::vector<T> tokens_;
  std::optional<dataset::indexed_dataset> data_;
};

}  // namespace millrace::test
