// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/megatron/data_share.hpp>
#include <millrace/dataset/megatron/range_samplers.hpp>
#include <millrace/dataset/megatron/split.hpp>
#include <millrace/dataset/run/run_order.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// A run as Megatron's --full-validation deals it, as a run_order: sample after sample, one to each
/// rank in turn, until every one was served. Where ranks do not divide the samples, those that have
/// one less than others begin again, so that all have as many batches (megatron-core's
/// MegatronFullValidationSampler, and eval_iters as Megatron sets it).
///
///   position n -> sample n where there is one, else the first of rank n mod ranks
///
/// The order must outlive it. Any thread.
template <ascending_order Order>
class full_validation_run {
 public:
  /// @param samples  of the order, from its first on
  /// @throws config_error  there are less samples than ranks, or more than the order has
  full_validation_run(const Order& order, std::int64_t ranks, std::int64_t samples);

  std::int64_t end() const noexcept { return iterations_ * ranks_; }
  std::int64_t seq_len() const { return order_.seq_len(); }
  std::int64_t source_count() const { return order_.source_count(); }
  std::filesystem::path prefix(std::int64_t source) const { return order_.prefix(source); }

  /// @pre 0 <= n < end()
  source_sample at(std::int64_t n) const { return order_.at(n < samples_ ? n : n - turned()); }

  /// @throws as those of the order
  std::int64_t pieces(const source_sample& sample, std::vector<piece>& out) const {
    return order_.pieces(sample, out);
  }
  void starts_of(const source_sample& sample, std::span<const piece> pieces,
                 std::vector<std::int64_t>& out) const {
    piece_starts(order_, sample, pieces, out);
  }
  std::vector<std::int64_t> positions_with(std::int64_t source, sequence_range sequences,
                                           std::int64_t before) const;

  sample_round round_of(std::int64_t source, std::int64_t k) const {
    return order_.round_of(source, k);
  }
  std::vector<left_out> left_out_of(std::int64_t source, const sample_round& round) const {
    return order_.left_out_of(source, round);
  }
  sample_turns turns_of(std::int64_t source, const sample_round& round, std::int64_t begin,
                        std::int64_t end) const;
  std::vector<source_sample> also_touched(std::int64_t, std::int64_t) const { return {}; }

 private:
  /// From a position behind the last sample back to the sample that is served there: it is the
  /// rank's first, and the position is of the last iteration.
  std::int64_t turned() const noexcept { return (iterations_ - 1) * ranks_; }

  const Order& order_;
  std::int64_t ranks_;
  std::int64_t samples_;
  std::int64_t iterations_;
};

// ---------------------------------------------------------------------------------------------

template <ascending_order Order>
full_validation_run<Order>::full_validation_run(const Order& order, std::int64_t ranks,
                                                std::int64_t samples)
    : order_(order),
      ranks_(ranks),
      samples_(samples),
      iterations_(full_validation_sampler(samples, {1, ranks, 0}).eval_iterations()) {
  if (samples < ranks) {
    throw config_error("there are " + std::to_string(samples) + " samples for " +
                       std::to_string(ranks) +
                       " ranks, expected as many as ranks at least in full validation");
  }
  if (samples > order.end()) {
    throw config_error("the full validation is to serve " + std::to_string(samples) +
                       " samples, but the run has " + std::to_string(order.end()));
  }
}

template <ascending_order Order>
std::vector<std::int64_t> full_validation_run<Order>::positions_with(std::int64_t source,
                                                                     sequence_range sequences,
                                                                     std::int64_t before) const {
  std::vector<std::int64_t> all =
      order_.positions_with(source, sequences, std::min(before, samples_));
  const std::size_t once = all.size();
  for (std::size_t i = 0; i < once; ++i) {
    const std::int64_t again = all[i] + turned();
    if (all[i] < ranks_ && samples_ <= again && again < before) all.push_back(again);
  }
  return all;
}

template <ascending_order Order>
sample_turns full_validation_run<Order>::turns_of(std::int64_t source, const sample_round& round,
                                                  std::int64_t begin, std::int64_t end) const {
  sample_turns turns;
  const auto samples = [&](std::int64_t first, std::int64_t last) {
    return samples_at(order_, source, round, first, std::max(first, last));
  };
  const sample_range here = samples(std::min(begin, samples_), std::min(end, samples_));
  if (here.first != here.last) turns.here.push_back(here);
  if (end <= samples_) return turns;
  const sample_range again = samples(std::max(begin, samples_) - turned(), end - turned());
  if (again.first != again.last) {
    turns.again.push_back({again, "by ranks that have a sample less, which begin again"});
  }
  return turns;
}

}  // namespace millrace::dataset
