// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <millrace/dataset/detail/megatron/data_share.hpp>
#include <millrace/dataset/detail/megatron/torch_random.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// What torch.randperm draws from the number of an epoch: 4 bytes a sample, or 8 where it must.
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

/// Where the batches of each rank lie in the order that is drawn for an epoch.
struct cyclic_layout {
  std::int64_t total = 0;  ///< samples of the dataset
  data_share share;        ///< its rank is not looked at
  bool sharded = true;

  /// Samples that an epoch counts, the largest multiple of W.
  std::int64_t active() const noexcept { return total - total % share.width(); }
  /// Samples that are drawn: of one rank where they are sharded, else of all.
  std::int64_t drawn() const noexcept {
    return sharded ? total / share.width() * share.micro_batch_size
                   : total / share.micro_batch_size * share.micro_batch_size;
  }
  /// Batches that a rank has in the whole epoch.
  std::int64_t batches(std::int64_t rank) const noexcept {
    if (sharded) return drawn() / share.micro_batch_size;
    if (rank >= drawn()) return 0;
    return ((drawn() - rank - 1) / share.ranks + 1) / share.micro_batch_size;
  }
  /// Row `row` of a rank's batch of the epoch.
  std::int64_t sample(const drawn_order& order, std::int64_t rank, std::int64_t batch,
                      std::int64_t row) const noexcept {
    if (sharded) return rank * drawn() + order[batch * share.micro_batch_size + row];
    return order[batch * share.width() + rank + row * share.ranks];
  }
};

namespace detail {

/// @throws config_error  as cyclic_sampler
MILLRACE_EXPORT void check_cyclic(const cyclic_layout& layout, std::int64_t consumed_samples);

}  // namespace detail

/// `--dataloader-type cyclic`: one pass of a rank over the dataset, in an order that torch.randperm
/// draws from the epoch's number alone (no seed of the run enters).
///
/// With W = micro-batch size * ranks, an epoch is the largest multiple of W that the dataset has.
/// Sharded, each rank shuffles a range of its own; unsharded, all ranks share one permutation and
/// take every `ranks`-th of it. Unsharded, ranks may get one batch more than others, as in
/// Megatron: these then are ahead for good, so follow each rank's own `next_pass`.
///
/// The order is held whole, 4 or 8 bytes a sample of it. Reading is for any thread.
class MILLRACE_EXPORT cyclic_sampler {
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
    return consumed_ + t * layout_.share.width();
  }

  /// The pass after this one, as this rank counts.
  cyclic_sampler next_pass() const {
    return {layout_.total, consumed_before(batches_), layout_.share, layout_.sharded};
  }

 private:
  cyclic_layout layout_;
  std::int64_t consumed_;
  std::int64_t epoch_ = 0;
  std::int64_t first_ = 0;  // batch of the epoch
  std::int64_t batches_ = 0;
  drawn_order order_;
};

}  // namespace millrace::dataset
