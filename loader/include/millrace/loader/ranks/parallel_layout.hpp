// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include <millrace/error.hpp>
#include <millrace/loader/ranks/rank_grid.hpp>

namespace millrace::loader {

/// How a job is laid out, in Megatron's terms. What is not told follows: data parallelism is what
/// is left of the ranks.
struct parallel_options {
  std::int64_t world_size = 1;
  std::int64_t tensor_parallel = 1;
  std::int64_t context_parallel = 1;
  std::int64_t pipeline_parallel = 1;
  std::int64_t expert_parallel = 1;
  std::int64_t expert_tensor_parallel = 0;               ///< 0: as tensor_parallel
  std::string order = std::string(megatron_rank_order);  ///< tp-cp-ep-pp-dp: Megatron's
                                                         ///< --use-tp-pp-dp-mapping
};

/// Where a rank is: along the axes of attention, and along those of experts.
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

/// The ranks of a job, numbered twice: rank = tp + TP * (cp + CP * (dp + DP * pp)) for attention,
/// and, over the same ranks, expert_tp + ETP * (ep + EP * (expert_dp + EDP * pp)) for experts, with
/// the usual order. Data goes by the first. As `initialize_model_parallel` of megatron-core 0.16.1.
class parallel_layout {
 public:
  /// @throws config_error  the sizes do not divide the ranks; the order is none; experts would lie
  ///                       on other pipeline stages than attention.
  explicit parallel_layout(const parallel_options& options)
      : attention_(attention_sizes(options), options.order),
        experts_(expert_sizes(options), options.order) {
    const std::int64_t dp = attention_.sizes().dp;
    const std::int64_t expert_dp = experts_.sizes().dp;
    // Megatron's rule, which is stricter than its second check, that both have the same stages.
    if ((options.pipeline_parallel > 1 && dp != expert_dp && !attention_.ends_with_stages()) ||
        attention_.groups("pp") != experts_.groups("pp")) {
      throw config_error("the order of ranks '" + options.order +
                         "' puts experts on other pipeline stages than attention: expected pp at "
                         "its end, or a data parallelism of experts, now " +
                         std::to_string(expert_dp) + ", equal to the other one, " +
                         std::to_string(dp));
    }
  }

  const rank_grid& attention() const noexcept { return attention_; }
  const rank_grid& experts() const noexcept { return experts_; }
  std::int64_t world_size() const noexcept { return attention_.size(); }

  /// @throws config_error  there is no such rank
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
