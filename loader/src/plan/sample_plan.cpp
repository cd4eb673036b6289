// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/plan/sample_plan.hpp>

#include <cstdint>
#include <string>

#include <millrace/dataset/instant/schedule.hpp>
#include <millrace/dataset/run/batch_steps.hpp>
#include <millrace/error.hpp>

namespace millrace::loader {

namespace detail {

MILLRACE_INLINE void check_begins(const dataset::schedule& blend,
                                  const dataset::batch_steps& steps) {
  for (const dataset::segment_begin& segment : blend.begins()) {
    const std::int64_t position = steps.first_position(segment.step);
    if (position == segment.position) continue;
    throw config_error("the segment of the schedule from step " + std::to_string(segment.step) +
                       " on begins at sample " + std::to_string(segment.position) +
                       " of the run, but step " + std::to_string(segment.step) +
                       " of the loader at sample " + std::to_string(position) + ", of " +
                       std::to_string(steps.samples_of(segment.step)) +
                       ": expected the same global_batch_size and ramp-up as "
                       "instant_options::first_position_of counts by");
  }
}

}  // namespace detail

}  // namespace millrace::loader
