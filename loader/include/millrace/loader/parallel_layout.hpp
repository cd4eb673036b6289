// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <millrace/error.hpp>
#include <millrace/loader/detail/ranks/rank_grid.hpp>

// Example:
//
//     // Data-parallel rank of rank 13 of 16, with tensor parallelism of 2 and 2 pipeline stages.
//     const millrace::loader::parallel_layout layout(
//         {.world_size = 16, .tensor_parallel = 2, .pipeline_parallel = 2});
//     const std::int64_t dp = layout.place_of(13).dp;

namespace millrace::loader {

/// The sizes of a job's parallel layout, in Megatron's terms. The data-parallel size follows from
/// the others.
struct parallel_options {
  std::int64_t world_size = 1;
  std::int64_t tensor_parallel = 1;
  std::int64_t context_parallel = 1;
  std::int64_t pipeline_parallel = 1;
  std::int64_t expert_parallel = 1;
  std::int64_t expert_tensor_parallel = 0;               ///< 0: the same as tensor_parallel
  std::string order = std::string(megatron_rank_order);  ///< "tp-cp-ep-pp-dp" corresponds to
                                                         ///< Megatron's --use-tp-pp-dp-mapping
};

/// The index of a rank along each axis. The grid of attention has the axes `tp`, `cp`, `dp` and
/// `pp`; the grid of experts has `expert_tp`, `ep`, `expert_dp` and `pp`.
struct parallel_place {
  std::int64_t tp = 0;
  std::int64_t cp = 0;
  std::int64_t dp = 0;
  std::int64_t pp = 0;
  std::int64_t ep = 0;
  std::int64_t expert_tp = 0;
  std::int64_t expert_dp = 0;

  friend bool operator==(const parallel_place&, const parallel_place&) = default;
};

/// The ranks of a job. Each rank has a place in the grid of attention and in the grid of experts.
/// In the default order, with the size of each axis in capital letters:
///
///     attention: rank = tp + TP * (cp + CP * (dp + DP * pp))
///     experts:   rank = expert_tp + ETP * (ep + EP * (expert_dp + EDP * pp))
///
/// Data is distributed along the `dp` axis of the attention grid. Both grids match
/// `initialize_model_parallel` of megatron-core 0.16.1.
///
///     const millrace::loader::parallel_layout layout(
///         {.world_size = 64, .tensor_parallel = 4, .pipeline_parallel = 2});
///     const std::int64_t dp = layout.place_of(17).dp;
class parallel_layout {
 public:
  /// @throws config_error  the product of the sizes does not divide the number of ranks, the order
  ///                       is invalid, or a rank would have different pipeline stages for attention
  ///                       and for experts
  explicit parallel_layout(const parallel_options& options)
      : attention_(attention_sizes(options), options.order),
        experts_(expert_sizes(options), options.order) {
    const std::int64_t dp = attention_.sizes().dp;
    const std::int64_t expert_dp = experts_.sizes().dp;
    // Megatron makes both checks. The first is stricter: the second requires only that the pipeline
    // stages of attention and experts are the same.
    if ((options.pipeline_parallel > 1 && dp != expert_dp && !attention_.ends_with_stages()) ||
        attention_.groups("pp") != experts_.groups("pp")) {
      throw config_error(
          "the order of ranks '" + options.order +
          "' puts experts on other pipeline stages than attention: expected an order "
          "that ends with pp, or equal data parallelism; that of experts is " +
          std::to_string(expert_dp) + ", that of attention " + std::to_string(dp));
    }
  }

  const rank_grid& attention() const noexcept { return attention_; }
  const rank_grid& experts() const noexcept { return experts_; }
  std::int64_t world_size() const noexcept { return attention_.size(); }

  /// @throws config_error  the rank does not exist
  parallel_place place_of(std::int64_t rank) const {
    const axis_values a = attention_.place_of(rank);
    const axis_values e = experts_.place_of(rank);
    return {a.tp, a.cp, a.dp, a.pp, e.ep, e.tp, e.dp};
  }

 private:
  static std::int64_t share_of(std::int64_t world_size, std::int64_t sizes[3], const char* names) {
    std::int64_t product = 1;
    for (int i = 0; i < 3; ++i) {
      if (sizes[i] < 1 || sizes[i] > world_size / product) {
        throw config_error("world_size is " + std::to_string(world_size) +
                           ", expected a multiple of " + names + ", which are " +
                           std::to_string(sizes[0]) + ", " + std::to_string(sizes[1]) + " and " +
                           std::to_string(sizes[2]));
      }
      product *= sizes[i];
    }
    if (world_size % product == 0) return world_size / product;
    throw config_error("world_size is " + std::to_string(world_size) + ", expected a multiple of " +
                       std::to_string(product) + ", the product of " + names);
  }

  static axis_values attention_sizes(const parallel_options& o) {
    std::int64_t sizes[] = {o.tensor_parallel, o.context_parallel, o.pipeline_parallel};
    const std::int64_t dp =
        share_of(o.world_size, sizes, "tensor_parallel, context_parallel and pipeline_parallel");
    return {o.tensor_parallel, o.context_parallel, 1, dp, o.pipeline_parallel};
  }

  static axis_values expert_sizes(const parallel_options& o) {
    const std::int64_t tp =
        o.expert_tensor_parallel == 0 ? o.tensor_parallel : o.expert_tensor_parallel;
    std::int64_t sizes[] = {tp, o.expert_parallel, o.pipeline_parallel};
    const std::int64_t dp = share_of(
        o.world_size, sizes, "expert_tensor_parallel, expert_parallel and pipeline_parallel");
    return {tp, 1, o.expert_parallel, dp, o.pipeline_parallel};
  }

  rank_grid attention_;
  rank_grid experts_;
};

}  // namespace millrace::loader
