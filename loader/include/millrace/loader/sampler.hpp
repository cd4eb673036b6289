// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cassert>
#include <cstdint>
#include <string>

#include <millrace/error.hpp>
#include <millrace/loader/options.hpp>

namespace millrace::loader {

/// Which samples make a micro-batch: Megatron's `single` sampler (dataloader-type single).
///
/// Micro-batch m of rank r holds samples consumed + m*W*B + r*B + 0 .. B-1, with W ranks and B
/// rows. So a step of all ranks takes W*B consecutive samples, whatever W and B are, and what is
/// left below W*B at the end is dropped. Pure arithmetic: any thread, nothing stored.
class sampler {
 public:
  /// @param sample_count  samples there are, over all ranks
  /// @throws config_error  an option is out of range, or more is consumed than there is.
  sampler(std::int64_t sample_count, const loader_options& options) : options_(check(options)) {
    if (options.consumed_samples > sample_count) {
      throw config_error("consumed_samples is " + std::to_string(options.consumed_samples) +
                         ", expected at most " + std::to_string(sample_count) +
                         ", the samples there are");
    }
    micro_batches_ = (sample_count - options.consumed_samples) / samples_per_micro_batch();
  }

  /// Micro-batches that a rank gets; 0 where less than W*B samples are left.
  std::int64_t micro_batches() const noexcept { return micro_batches_; }

  /// Samples that all ranks together take in one micro-batch: W*B.
  std::int64_t samples_per_micro_batch() const noexcept {
    return options_.world_size * options_.batch_size;
  }

  /// First sample of this rank's micro-batch; its rows are this one and those behind it.
  ///
  /// @pre 0 <= micro_batch < micro_batches()
  std::int64_t first_sample(std::int64_t micro_batch) const noexcept {
    assert(micro_batch < micro_batches_);
    return consumed_before(micro_batch) + options_.rank * options_.batch_size;
  }

  /// Samples that all ranks have taken before a micro-batch: where a later run can go on.
  ///
  /// @pre 0 <= micro_batch <= micro_batches()
  std::int64_t consumed_before(std::int64_t micro_batch) const noexcept {
    assert(0 <= micro_batch && micro_batch <= micro_batches_);
    return options_.consumed_samples + micro_batch * samples_per_micro_batch();
  }

 private:
  loader_options options_;
  std::int64_t micro_batches_ = 0;
};

}  // namespace millrace::loader
