// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>
#include <string>
#include <vector>

#include <millrace/dataset/detail/megatron/data_share.hpp>
#include <millrace/error.hpp>

/// Megatron's samplers that keep the order of the dataset. Each computes the samples of a rank's
/// t-th batch by arithmetic alone; thread-safe.
namespace millrace::dataset {

/// Samples [first, first + count) of a dataset.
struct sample_run {
  std::int64_t first = 0;
  std::int64_t count = 0;
  bool operator==(const sample_run&) const = default;
};

/// `--dataloader-type single`: micro-batch t of rank r is the b samples from consumed + t*W + r*b
/// on, where b is the micro-batch size and W = b * ranks. One pass, no epochs.
class single_sampler {
 public:
  /// @param drop_last  if true, drop the last samples if they are fewer than W, as Megatron's
  ///                   trainer always does; if false, serve them as one more batch, which is short
  ///                   or empty on the last ranks
  /// @throws config_error  a number is out of range, or all samples are consumed
  single_sampler(std::int64_t total_samples, std::int64_t consumed_samples, const data_share& share,
                 bool drop_last = true)
      : total_(total_samples), consumed_(consumed_samples), share_(share) {
    detail::check_sampler(total_samples, consumed_samples, share);
    if (consumed_samples >= total_samples) {
      throw config_error("consumed_samples is " + std::to_string(consumed_samples) +
                         ", expected less than the " + std::to_string(total_samples) +
                         " samples of the run: no samples are left to serve");
    }
    const std::int64_t left = total_ - consumed_;
    batches_ = left / share_.width();
    if (!drop_last && left % share_.width() != 0) ++batches_;
  }

  std::int64_t batches() const noexcept { return batches_; }

  /// @pre 0 <= t < batches()
  sample_run batch(std::int64_t t) const noexcept {
    const std::int64_t block = consumed_before(t);
    assert(0 <= t && t < batches_);
    const std::int64_t skipped = std::min(share_.rank * share_.micro_batch_size, total_ - block);
    return {block + skipped, std::min(share_.micro_batch_size, total_ - block - skipped)};
  }

  /// Samples consumed by all ranks before batch t. A sampler that is created with this number as
  /// `consumed_samples` resumes at batch t.
  std::int64_t consumed_before(std::int64_t t) const noexcept {
    return consumed_ + t * share_.width();
  }

 private:
  std::int64_t total_;
  std::int64_t consumed_;
  data_share share_;
  std::int64_t batches_ = 0;
};

/// `--full-validation`: rank r gets samples r, r + ranks, ..., one per batch, from the first sample
/// on.
class full_validation_sampler {
 public:
  /// @throws config_error  a number is out of range, or the micro-batch size is not 1
  full_validation_sampler(std::int64_t total_samples, const data_share& share)
      : total_(total_samples), share_(share) {
    detail::check_sampler(total_samples, 0, share);
    if (share.micro_batch_size != 1) {
      throw config_error("micro_batch_size is " + std::to_string(share.micro_batch_size) +
                         ", expected 1: full validation takes one sample at a time");
    }
  }

  /// Batches of this rank; 0 if the rank is not below the number of samples.
  std::int64_t batches() const noexcept {
    return share_.rank >= total_ ? 0 : (total_ - share_.rank - 1) / share_.ranks + 1;
  }

  /// The value of eval_iters that Megatron sets on all ranks: the largest number of batches that
  /// any rank has. Ranks with fewer batches start over.
  std::int64_t eval_iterations() const noexcept { return (total_ - 1) / share_.ranks + 1; }

  /// @pre 0 <= t < batches()
  sample_run batch(std::int64_t t) const noexcept {
    assert(0 <= t && t < batches());
    return {share_.rank + t * share_.ranks, 1};
  }

 private:
  std::int64_t total_;
  data_share share_;
};

/// Hybrid context parallelism: a rank gets all micro-batches of a step as one list. An incomplete
/// global batch at the end is dropped.
class hybrid_sampler {
 public:
  /// @throws config_error  a number is out of range, all samples are consumed, or the global batch
  ///                       size is not a multiple of micro-batch size times ranks
  hybrid_sampler(std::int64_t total_samples, std::int64_t consumed_samples,
                 std::int64_t global_batch_size, const data_share& share)
      : micro_batches_(total_samples, consumed_samples, share), share_(share) {
    if (global_batch_size < 1 || global_batch_size % share.width() != 0) {
      throw config_error("global_batch_size is " + std::to_string(global_batch_size) +
                         ", expected a multiple of " + std::to_string(share.width()) +
                         ", the micro-batch size times the data-parallel ranks");
    }
    per_step_ = global_batch_size / share.width();
  }

  std::int64_t batches() const noexcept { return micro_batches_.batches() / per_step_; }

  /// The samples of step t, in ascending order: micro_batch_size from each of its micro-batches.
  /// @pre 0 <= t < batches()
  std::vector<std::int64_t> batch(std::int64_t t) const {
    assert(0 <= t && t < batches());
    std::vector<std::int64_t> samples;
    samples.reserve(static_cast<std::size_t>(per_step_ * share_.micro_batch_size));
    for (std::int64_t m = t * per_step_; m < (t + 1) * per_step_; ++m) {
      const sample_run run = micro_batches_.batch(m);
      for (std::int64_t k = 0; k < run.count; ++k) samples.push_back(run.first + k);
    }
    return samples;
  }

  std::int64_t consumed_before(std::int64_t t) const noexcept {
    return micro_batches_.consumed_before(t * per_step_);
  }

 private:
  single_sampler micro_batches_;
  data_share share_;
  std::int64_t per_step_ = 1;
};

}  // namespace millrace::dataset
