// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <utility>
#include <vector>

#include <millrace/dataset/detail/run/sample_text.hpp>
#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>
#include <millrace/loader/detail/io/range_reader.hpp>
#include <millrace/loader/detail/plan/context_plan.hpp>

namespace millrace::loader::detail {

/// A micro-batch whose rows are known, but whose tokens are not read yet.
struct planned_batch {
  dataset::batch_number number;
  std::vector<std::int64_t> positions;  // [rows]
  std::vector<dataset::sample_text> rows;
  std::exception_ptr failure;  // if set, the rows are invalid
};

/// Plans the rows at `batch.positions`.
///
/// @param boundaries  see `dataset::run::text_of`
/// @param context     reduces each row to the parts that the rank reads
/// @throws as `dataset::run::text_of` and `context_plan::reduce`
inline void plan_rows(const dataset::run& run, bool boundaries, context_plan& context,
                      planned_batch& batch) {
  batch.rows.resize(batch.positions.size());
  for (std::size_t r = 0; r < batch.rows.size(); ++r) {
    run.text_of(batch.positions[r], boundaries, batch.rows[r]);
    context.reduce(batch.rows[r]);
  }
}

/// Plans a rank's micro-batches some time before they are filled, so that readers can prefetch. If
/// planning a batch fails, the failure is reported only when that batch is due. Not thread-safe.
class look_ahead {
 public:
  /// @param run         must outlive this object
  /// @param batches     number of batches to plan beyond the batch that is due
  /// @param boundaries  as for `plan_rows`, and so is `context`
  look_ahead(const dataset::run& run, dataset::sampler sampler, std::int64_t rank,
             std::int64_t batches, bool boundaries, context_plan context = {})
      : run_(&run),
        sampler_(std::move(sampler)),
        rank_(rank),
        ring_(static_cast<std::size_t>(batches) + 1),
        boundaries_(boundaries),
        context_(std::move(context)) {}

  /// Swaps `out` with the batch that is due, so that later batches reuse the memory of `out`.
  ///
  /// @param ahead_of  called as ahead_of(n) after batch n is planned; n counts this object's
  ///                  batches from 0. Must return the vector that receives the ranges of batch n
  /// @return false at the end of the run
  template <class AheadOf>
  bool next(planned_batch& out, const AheadOf& ahead_of) {
    while (!ended_ && planned_ < ring_.size()) plan_one(ahead_of);
    if (planned_ == 0) return false;
    std::swap(out, ring_[first_]);
    first_ = (first_ + 1) % ring_.size();
    --planned_;
    return true;
  }

 private:
  template <class AheadOf>
  void plan_one(const AheadOf& ahead_of) {
    planned_batch& batch = ring_[(first_ + planned_) % ring_.size()];
    batch.failure = nullptr;
    if (next_ == sampler_.count()) {
      ended_ = true;
      return;
    }
    batch.number = sampler_.batch(next_++, rank_, batch.positions);
    ++planned_;
    try {
      plan_rows(*run_, boundaries_, context_, batch);
    } catch (...) {
      batch.failure = std::current_exception();
      ended_ = true;
      return;
    }
    std::vector<file_range>& ahead = ahead_of(told_++);
    for (const dataset::sample_text& row : batch.rows) {
      for (const dataset::row_part& part : row.parts) ahead.push_back(part.from);
    }
  }

  const dataset::run* run_;
  dataset::sampler sampler_;
  std::int64_t rank_;
  std::vector<planned_batch> ring_;
  std::size_t first_ = 0;
  std::size_t planned_ = 0;
  std::int64_t next_ = 0;  // index of the next micro-batch of the rank
  std::int64_t told_ = 0;  // number of batches whose ranges were announced
  bool ended_ = false;
  bool boundaries_;
  context_plan context_;
};

}  // namespace millrace::loader::detail
