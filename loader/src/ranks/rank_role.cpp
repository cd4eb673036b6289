// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/ranks/rank_role.hpp>

#include <algorithm>
#include <cstdint>
#include <string>

#include <millrace/error.hpp>
#include <millrace/loader/detail/ranks/context_slices.hpp>
#include <millrace/loader/parallel_layout.hpp>

namespace millrace::loader {

namespace detail {

MILLRACE_INLINE void check_stage(const char* what, std::int64_t stage, std::int64_t stages) {
  if (stage >= 0 && stage < stages) return;
  throw config_error(std::string(what) + " is " + std::to_string(stage) + ", expected 0 to " +
                     std::to_string(stages - 1));
}

}  // namespace detail

MILLRACE_INLINE batch_needs needs_of_stage(std::int64_t stage, std::int64_t stages,
                                           const pipeline_options& options) {
  detail::check_stage("the pipeline stage", stage, stages);
  batch_needs needs{stage == 0, stage == stages - 1, options.document_ends};
  for (const std::int64_t each : options.mtp_stages) {
    detail::check_stage("a stage of multi-token prediction", each, stages);
    if (each == stage) needs.tokens = needs.labels = true;
  }
  return needs;
}

// A stage runs its model chunks on groups of micro-batches. A group has as many micro-batches as
// there are stages. The forward passes of a group go through the first chunk, then the second
// chunk, and so on. The backward passes go through the chunks from last to first. So a micro-batch
// begins with the first chunk's forward pass, and ends with the first chunk's backward pass.
MILLRACE_INLINE std::int64_t held_by_stage(std::int64_t stage, std::int64_t stages,
                                           std::int64_t model_chunks) {
  detail::check_stage("the pipeline stage", stage, stages);
  if (model_chunks < 1 || model_chunks > 1024) {
    throw config_error("model_chunks is " + std::to_string(model_chunks) + ", expected 1 to 1024");
  }
  if (model_chunks == 1) return stages - stage;
  const std::int64_t group = stages * model_chunks;
  const auto begun = [&](std::int64_t forwards) {
    return stages * (forwards / group) + std::min(forwards % group, stages);
  };
  const auto ended = [&](std::int64_t backwards) {
    return stages * (backwards / group) +
           std::max<std::int64_t>(0, backwards % group - (group - stages));
  };
  const std::int64_t warm_up = 2 * (stages - stage - 1) + group - stages;
  std::int64_t most = 0;
  for (std::int64_t done = 0; done <= warm_up + group; ++done) {
    most = std::max(most, begun(done + 1) - ended(std::max<std::int64_t>(0, done - warm_up)));
  }
  return most;
}

MILLRACE_INLINE rank_role role_of(const parallel_layout& layout, std::int64_t rank,
                                  std::int64_t seq_len, const pipeline_options& options) {
  const axis_values& sizes = layout.attention().sizes();
  const parallel_place place = layout.place_of(rank);
  return {place,
          needs_of_stage(place.pp, sizes.pp, options),
          place.dp,
          sizes.dp,
          held_by_stage(place.pp, sizes.pp, options.model_chunks),
          context_slices(seq_len, sizes.cp, place.cp)};
}

}  // namespace millrace::loader
