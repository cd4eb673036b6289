// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <millrace/dataset/run/run_order.hpp>

namespace millrace::test {

/// A run of `samples` samples of a token each, in rounds of 10, of which only the numbers matter:
/// sample k is sequence k.
struct numbered_run {
  std::int64_t samples;

  std::int64_t end() const { return samples; }
  std::int64_t seq_len() const { return 1; }
  std::int64_t source_count() const { return 1; }
  std::filesystem::path prefix(std::int64_t) const { return "numbers"; }
  dataset::source_sample at(std::int64_t position) const { return {0, position}; }
  std::int64_t pieces(const dataset::source_sample& sample,
                      std::vector<dataset::piece>& out) const {
    out = {{sample.k, 0, 1}};
    return 0;
  }
  std::vector<std::int64_t> positions_with(std::int64_t, dataset::sequence_range sequences,
                                           std::int64_t before) const {
    std::vector<std::int64_t> all;
    const std::int64_t last = std::min({sequences.last, before, samples});
    for (std::int64_t k = sequences.first; k < last; ++k) all.push_back(k);
    return all;
  }
  std::int64_t taken(std::int64_t, std::int64_t positions) const { return positions; }
  dataset::sample_round round_of(std::int64_t, std::int64_t k) const {
    return {k / 10 * 10, k / 10 * 10 + 10, 1, "epoch " + std::to_string(k / 10)};
  }
  std::vector<dataset::left_out> left_out_of(std::int64_t, const dataset::sample_round&) const {
    return {};
  }
};

}  // namespace millrace::test
