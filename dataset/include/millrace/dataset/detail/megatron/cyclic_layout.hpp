// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <millrace/dataset/detail/megatron/torch_random.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// A data-parallel rank, and the number of samples in its micro-batches.
struct data_share {
  std::int64_t micro_batch_size = 1;
  std::int64_t ranks = 1;  ///< data-parallel ranks
  std::int64_t rank = 0;

  /// Samples in one micro-batch of all ranks together.
  std::int64_t width() const noexcept { return micro_batch_size * ranks; }
};

namespace detail {

MILLRACE_EXPORT void check_sampler(std::int64_t total_samples, std::int64_t consumed_samples,
                                   const data_share& share);

}  // namespace detail

/// The permutation that torch.randperm draws with the epoch's number as seed. Takes 4 bytes per
/// sample, or 8 for more than 2^32 samples.
class drawn_order {
 public:
  drawn_order() = default;
  drawn_order(std::int64_t epoch, std::int64_t size) {
    if (size <= std::int64_t{1} << 32) {
      narrow_.resize(static_cast<std::size_t>(size));
      torch_randperm(static_cast<std::uint64_t>(epoch), std::span(narrow_));
    } else {
      wide_.resize(static_cast<std::size_t>(size));
      torch_randperm(static_cast<std::uint64_t>(epoch), std::span(wide_));
    }
  }

  /// @pre 0 <= i < size
  std::int64_t operator[](std::int64_t i) const noexcept {
    const auto at = static_cast<std::size_t>(i);
    return wide_.empty() ? std::int64_t{narrow_[at]} : wide_[at];
  }

 private:
  std::vector<std::uint32_t> narrow_;
  std::vector<std::int64_t> wide_;
};

/// `--dataloader-type cyclic`: maps each rank's batches to the permutation drawn for an epoch.
/// torch.randperm draws it from the epoch's number alone; the run's seed is not used.
///
/// With W = micro-batch size * ranks, the number of samples in an epoch is the largest multiple of
/// W that the dataset has. If sharded, each rank shuffles its own range. If unsharded, all ranks
/// share one permutation, and each rank takes every `ranks`-th entry. As in Megatron, some ranks
/// may then have one batch more per epoch than others. These ranks skip the first batch of later
/// epochs.
struct cyclic_layout {
  std::int64_t total = 0;  ///< samples in the dataset
  data_share share;        ///< `share.rank` is ignored
  bool sharded = true;

  /// Samples in an epoch: the largest multiple of share.width() that is at most `total`.
  std::int64_t active() const noexcept { return total - total % share.width(); }
  /// Length of the permutation: the samples of one rank if sharded, otherwise the samples of all
  /// ranks.
  std::int64_t drawn() const noexcept {
    return sharded ? total / share.width() * share.micro_batch_size
                   : total / share.micro_batch_size * share.micro_batch_size;
  }
  /// Number of batches of a rank in a whole epoch.
  std::int64_t batches(std::int64_t rank) const noexcept {
    if (sharded) return drawn() / share.micro_batch_size;
    if (rank >= drawn()) return 0;
    return ((drawn() - rank - 1) / share.ranks + 1) / share.micro_batch_size;
  }
  /// The sample that a rank has in row `row` of its batch `batch` in an epoch.
  std::int64_t sample(const drawn_order& order, std::int64_t rank, std::int64_t batch,
                      std::int64_t row) const noexcept {
    if (sharded) return rank * drawn() + order[batch * share.micro_batch_size + row];
    return order[batch * share.width() + rank + row * share.ranks];
  }
};

namespace detail {

/// @throws config_error  a number is out of range, there are fewer samples than `share.width()`, or
///                       `consumed_samples` is not at the start of a batch of its epoch (the
///                       number of ranks or the micro-batch size changed during the run)
MILLRACE_EXPORT void check_cyclic(const cyclic_layout& layout, std::int64_t consumed_samples);

}  // namespace detail

}  // namespace millrace::dataset
