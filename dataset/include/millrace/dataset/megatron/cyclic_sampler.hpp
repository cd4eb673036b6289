// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/megatron/data_share.hpp>
#include <millrace/dataset/megatron/torch_random.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// `--dataloader-type cyclic`: one pass of a rank over the dataset, in an order that torch.randperm
/// draws from the epoch's number alone (no seed of the run enters).
///
/// With W = micro-batch size * ranks, an epoch is the largest multiple of W that the dataset has.
/// Sharded, each rank shuffles a range of its own; unsharded, all ranks share one permutation and
/// take every `ranks`-th of it. Unsharded, ranks may get one batch more than others, as in
/// Megatron: these then are ahead for good, so follow each rank's own `next_pass`.
///
/// The order is held whole, 4 or 8 bytes a sample of it. Reading is for any thread.
class cyclic_sampler {
 public:
  /// @throws config_error  a number is out of range, there are fewer samples than W, or `consumed`
  /// is
  ///                       not where a batch of its epoch begins (the ranks or the micro-batch size
  ///                       have changed on the way)
  cyclic_sampler(std::int64_t total_samples, std::int64_t consumed_samples, const data_share& share,
                 bool data_sharding = true);

  std::int64_t epoch() const noexcept { return epoch_; }

  /// Batches of this rank in this pass: at least one.
  std::int64_t batches() const noexcept { return batches_; }

  /// The samples of the rank's batch t of this pass.
  /// @pre 0 <= t < batches()
  std::vector<std::int64_t> batch(std::int64_t t) const;

  /// What the rank counts as consumed before batch t, by all ranks: t may be batches().
  std::int64_t consumed_before(std::int64_t t) const noexcept {
    return consumed_ + t * share_.width();
  }

  /// The pass after this one, as this rank counts.
  cyclic_sampler next_pass() const { return {total_, consumed_before(batches_), share_, sharded_}; }

 private:
  std::int64_t total_;
  std::int64_t consumed_;
  data_share share_;
  bool sharded_;
  std::int64_t epoch_ = 0;
  std::int64_t batches_ = 0;
  // The rank's k-th sample of the pass is base_ + order[first_ + k * stride_].
  std::int64_t base_ = 0;
  std::int64_t first_ = 0;
  std::int64_t stride_ = 1;
  std::vector<std::uint32_t> order_;  // one of the two: half the memory where it does
  std::vector<std::int64_t> wide_order_;
};

// ---------------------------------------------------------------------------------------------

inline cyclic_sampler::cyclic_sampler(std::int64_t total_samples, std::int64_t consumed_samples,
                                      const data_share& share, bool data_sharding)
    : total_(total_samples), consumed_(consumed_samples), share_(share), sharded_(data_sharding) {
  detail::check_sampler(total_samples, consumed_samples, share);
  const std::int64_t width = share.width();
  const std::int64_t active = total_samples - total_samples % width;
  if (active == 0) {
    throw config_error("there are " + std::to_string(total_samples) + " samples, expected " +
                       std::to_string(width) +
                       " or more: a micro-batch of each data-parallel rank");
  }
  epoch_ = consumed_samples / active;
  const std::int64_t current = consumed_samples % active;
  if (current % width != 0) {
    throw config_error(
        "consumed_samples is " + std::to_string(consumed_samples) + ", which is " +
        std::to_string(current) + " into its epoch of " + std::to_string(active) +
        " samples, expected a multiple of " + std::to_string(width) +
        " there (micro-batch size times data-parallel ranks): go on with those of the run before");
  }
  std::int64_t order_size = 0;
  std::int64_t left = 0;  // samples of this rank in this pass
  if (data_sharding) {
    order_size = total_samples / width * share.micro_batch_size;
    base_ = share.rank * order_size;
    first_ = current / share.ranks;
    left = order_size - first_;
  } else {
    order_size = total_samples / share.micro_batch_size * share.micro_batch_size;
    first_ = current + share.rank;
    stride_ = share.ranks;
    left = first_ >= order_size ? 0 : (order_size - first_ - 1) / stride_ + 1;
  }
  batches_ = left / share.micro_batch_size;
  if (order_size <= std::int64_t{1} << 32) {
    order_.resize(static_cast<std::size_t>(order_size));
    torch_randperm(static_cast<std::uint64_t>(epoch_), std::span(order_));
  } else {
    wide_order_.resize(static_cast<std::size_t>(order_size));
    torch_randperm(static_cast<std::uint64_t>(epoch_), std::span(wide_order_));
  }
}

inline std::vector<std::int64_t> cyclic_sampler::batch(std::int64_t t) const {
  assert(0 <= t && t < batches_);
  std::vector<std::int64_t> samples(static_cast<std::size_t>(share_.micro_batch_size));
  std::int64_t at = first_ + t * share_.micro_batch_size * stride_;
  for (std::int64_t& sample : samples) {
    const auto place = static_cast<std::size_t>(at);
    sample = base_ + (wide_order_.empty() ? std::int64_t{order_[place]} : wide_order_[place]);
    at += stride_;
  }
  return samples;
}

}  // namespace millrace::dataset
