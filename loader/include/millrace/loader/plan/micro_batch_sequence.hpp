// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include <millrace/dataset/megatron/cyclic_sampler.hpp>
#include <millrace/dataset/megatron/data_share.hpp>
#include <millrace/dataset/megatron/range_samplers.hpp>
#include <millrace/dataset/run/batch_steps.hpp>
#include <millrace/dataset/run/edited_stream.hpp>
#include <millrace/export.hpp>
#include <millrace/loader/options.hpp>

namespace millrace::loader {

/// Which micro-batch of a run one is.
struct batch_number {
  std::int64_t step = 0;           ///< of the run, from 0
  std::int64_t micro_batch = 0;    ///< of the step, from 0
  std::int64_t micro_batches = 1;  ///< of the step; where none is dropped, that the last one has
  std::int64_t first_sample = 0;   ///< served sample of row 0, over all ranks and from the start
  std::int64_t consumed = 0;       ///< samples of all ranks when this one is done

  friend bool operator==(const batch_number&, const batch_number&) = default;
};

/// The micro-batches of a rank, one after another: which positions the rows of each have. Samplers
/// are those of `dataset` (spec: megatron-core, data_samplers.py); this walks along them.
class MILLRACE_EXPORT micro_batch_sequence {
 public:
  static constexpr std::int64_t unbounded = std::numeric_limits<std::int64_t>::max();

  /// @param end    of the run without edits
  /// @param edits  of single only; shared, as it must live as long
  /// @throws config_error  more is consumed than there is; or, where `options` say what a step is,
  /// a
  ///                       part of one that is no whole number of this many ranks' micro-batches;
  ///                       or as the samplers
  micro_batch_sequence(std::int64_t end, const loader_options& options,
                       std::shared_ptr<const dataset::edited_stream> edits);

  /// How many a rank gets, from where it goes on; `unbounded` for ever.
  std::int64_t count() const noexcept { return count_; }

  /// Samples of all ranks once `n` micro-batches are consumed.
  std::int64_t consumed_after(std::int64_t n) const noexcept {
    return std::min(consumed_ + n * share_.width(), end_);
  }

  /// The next one.
  ///
  /// @param positions  of its rows, in place of what it held; fewer than the batch_size, or none,
  ///                   in a last one that is short
  /// @return false behind the last one
  bool next(batch_number& number, std::vector<std::int64_t>& positions);

 private:
  void fill_cyclic(std::vector<std::int64_t>& positions);
  void check_step() const;
  std::int64_t micro_batches_of(std::int64_t step) const noexcept;

  sampler_type type_;
  dataset::data_share share_;
  dataset::batch_steps steps_;
  bool drop_last_;
  std::int64_t consumed_;
  std::int64_t end_ = unbounded;  // of the samples of single
  std::int64_t count_ = 0;
  std::int64_t served_ = 0;
  std::shared_ptr<const dataset::edited_stream> edits_;
  std::optional<dataset::full_validation_sampler> validation_;
  std::optional<dataset::cyclic_sampler> pass_;
  std::int64_t in_pass_ = 0;
};

}  // namespace millrace::loader
