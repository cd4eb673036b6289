// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/ranks/rank_role.hpp>

#include <cstdint>
#include <string>

#include <millrace/error.hpp>
#include <millrace/loader/detail/ranks/context_slices.hpp>
#include <millrace/loader/parallel_layout.hpp>

namespace millrace::loader {

MILLRACE_INLINE batch_needs needs_of_stage(std::int64_t stage, std::int64_t stages,
                                           const pipeline_options& options) {
  const auto check = [&](const char* what, std::int64_t value) {
    if (value >= 0 && value < stages) return;
    throw config_error(std::string(what) + " is " + std::to_string(value) + ", expected 0 to " +
                       std::to_string(stages - 1));
  };
  check("the pipeline stage", stage);
  batch_needs needs{stage == 0, stage == stages - 1, options.document_ends};
  for (const std::int64_t each : options.mtp_stages) {
    check("a stage of multi-token prediction", each);
    if (each == stage) needs.tokens = needs.labels = true;
  }
  return needs;
}

MILLRACE_INLINE rank_role role_of(const parallel_layout& layout, std::int64_t rank,
                                  std::int64_t seq_len, const pipeline_options& options) {
  const axis_values& sizes = layout.attention().sizes();
  const parallel_place place = layout.place_of(rank);
  return {place, needs_of_stage(place.pp, sizes.pp, options), place.dp, sizes.dp,
          context_slices(seq_len, sizes.cp, place.cp)};
}

}  // namespace millrace::loader
