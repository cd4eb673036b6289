// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/run/batch_steps.hpp>

/// A model of Megatron's samplers. It follows Megatron's loops statement by statement and shares no
/// code with the library. Reference: data_samplers.py in megatron/legacy/data, and
/// num_microbatches_calculator.py.
namespace millrace::test {

using index_batch = std::vector<std::int64_t>;

/// Returns `data[first : last]` as Python computes it.
inline index_batch python_slice(const index_batch& data, std::size_t first, std::size_t last) {
  index_batch slice;
  for (std::size_t i = first; i < last && i < data.size(); ++i) slice.push_back(data[i]);
  return slice;
}

/// Returns the batches that MegatronPretrainingSampler.__iter__ yields on a rank.
inline std::vector<index_batch> megatron_single(std::int64_t total_samples,
                                                std::int64_t consumed_samples,
                                                std::int64_t micro_batch_size, std::int64_t ranks,
                                                std::int64_t rank, bool drop_last) {
  std::vector<index_batch> yielded;
  const auto start = static_cast<std::size_t>(rank * micro_batch_size);
  const std::size_t end = start + static_cast<std::size_t>(micro_batch_size);
  index_batch batch;
  for (std::int64_t idx = consumed_samples; idx < total_samples; ++idx) {
    batch.push_back(idx);
    if (static_cast<std::int64_t>(batch.size()) == micro_batch_size * ranks) {
      yielded.push_back(python_slice(batch, start, end));
      batch.clear();
    }
  }
  if (!batch.empty() && !drop_last) yielded.push_back(python_slice(batch, start, end));
  return yielded;
}

/// Follows the loop of hybrid context parallelism. Each returned batch holds all samples that the
/// rank gets in one step, over all micro-batches of the step.
inline std::vector<index_batch> megatron_hybrid(std::int64_t total_samples,
                                                std::int64_t consumed_samples,
                                                std::int64_t micro_batch_size,
                                                std::int64_t global_batch_size, std::int64_t ranks,
                                                std::int64_t rank) {
  std::vector<index_batch> yielded;
  index_batch batch;
  for (std::int64_t idx = consumed_samples; idx < total_samples; ++idx) {
    batch.push_back(idx);
    if (static_cast<std::int64_t>(batch.size()) < global_batch_size) continue;
    index_batch shares;
    const std::int64_t width = micro_batch_size * ranks;
    for (std::int64_t m = 0; m < global_batch_size / width; ++m) {
      const auto start = static_cast<std::size_t>(m * width + rank * micro_batch_size);
      const auto slice =
          python_slice(batch, start, start + static_cast<std::size_t>(micro_batch_size));
      shares.insert(shares.end(), slice.begin(), slice.end());
    }
    yielded.push_back(shares);
    batch.clear();
  }
  return yielded;
}

/// Returns torch.randperm(n) on a CPU, for a generator with seed `seed`. Correct for small n only.
inline index_batch naive_randperm(std::uint32_t seed, std::int64_t n) {
  std::mt19937 random(seed);
  index_batch a(static_cast<std::size_t>(n));
  std::iota(a.begin(), a.end(), std::int64_t{0});
  for (std::int64_t i = 0; i + 1 < n; ++i) {
    const auto z = static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(n - i));
    std::swap(a[static_cast<std::size_t>(i)], a[static_cast<std::size_t>(i + z)]);
  }
  return a;
}

/// Iterates MegatronPretrainingRandomSampler repeatedly and returns the first `count` batches.
///
/// @param epochs  if not null, receives the epoch of each batch
inline std::vector<index_batch> megatron_cyclic(std::int64_t total_samples,
                                                std::int64_t consumed_samples,
                                                std::int64_t micro_batch_size, std::int64_t ranks,
                                                std::int64_t rank, bool data_sharding,
                                                std::size_t count,
                                                std::vector<std::int64_t>* epochs = nullptr) {
  const std::int64_t width = micro_batch_size * ranks;
  const std::int64_t active = total_samples - total_samples % width;
  std::vector<index_batch> yielded;
  for (;;) {
    const std::int64_t epoch = consumed_samples / active;
    const std::int64_t current = consumed_samples % active;
    index_batch idx_range;
    if (data_sharding) {
      const std::int64_t bucket_size = total_samples / width * micro_batch_size;
      const index_batch perm = naive_randperm(static_cast<std::uint32_t>(epoch), bucket_size);
      for (std::int64_t i = current / ranks; i < bucket_size; ++i) {
        idx_range.push_back(rank * bucket_size + perm[static_cast<std::size_t>(i)]);
      }
    } else {
      const std::int64_t full = total_samples / micro_batch_size * micro_batch_size;
      const index_batch perm = naive_randperm(static_cast<std::uint32_t>(epoch), full);
      for (std::int64_t i = current + rank; i < full; i += ranks) {
        idx_range.push_back(perm[static_cast<std::size_t>(i)]);
      }
    }
    index_batch batch;
    for (const std::int64_t idx : idx_range) {
      batch.push_back(idx);
      if (static_cast<std::int64_t>(batch.size()) < micro_batch_size) continue;
      consumed_samples += width;
      yielded.push_back(batch);
      if (epochs != nullptr) epochs->push_back(epoch);
      if (yielded.size() == count) return yielded;
      batch.clear();
    }
  }
}

/// Iterates MegatronFullValidationSampler repeatedly and returns its batches. Every rank gets as
/// many batches as rank 0 has in one pass.
inline std::vector<index_batch> megatron_full_validation(std::int64_t total_samples,
                                                         std::int64_t ranks, std::int64_t rank) {
  std::vector<index_batch> yielded;
  const std::int64_t eval_iters = (total_samples + ranks - 1) / ranks;
  for (;;) {
    for (std::int64_t idx = rank; idx < total_samples; idx += ranks) {
      if (static_cast<std::int64_t>(yielded.size()) == eval_iters) return yielded;
      yielded.push_back({idx});
    }
    if (static_cast<std::int64_t>(yielded.size()) == eval_iters) return yielded;
  }
}

/// Returns the global batch size after `consumed_samples`, as
/// RampupBatchsizeNumMicroBatchesCalculator computes it.
inline std::int64_t megatron_global_batch(std::int64_t consumed_samples,
                                          std::int64_t global_batch_size,
                                          const std::optional<dataset::rampup_batch>& rampup) {
  if (!rampup || consumed_samples > rampup->samples) return global_batch_size;
  const auto increments = (global_batch_size - rampup->start) / rampup->increment;
  const double per_increment =
      static_cast<double>(rampup->samples) / static_cast<double>(increments);
  const auto steps =
      static_cast<std::int64_t>(static_cast<double>(consumed_samples) / per_increment);
  return std::min(global_batch_size, rampup->start + steps * rampup->increment);
}

}  // namespace millrace::test
