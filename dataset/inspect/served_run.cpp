// SPDX-License-Identifier: Apache-2.0
#include "served_run.hpp"

#include <algorithm>
#include <memory>
#include <utility>

#include <millrace/dataset/detail/run/edited_stream.hpp>

#include "command_line.hpp"

namespace millrace::inspect {

served_run served_run_of(const run_configuration& run, const std::string& help) {
  const std::int64_t end = run.order->end();
  std::shared_ptr<const dataset::edited_stream> stream;
  if (run.has_state && run.sampler.type == dataset::sampler_type::single) {
    if (!run.has_end && end > run.samples) {
      throw misuse("--train-samples is required: edits shift all samples up to the end of the run",
                   help);
    }
    const dataset::batch_steps steps(run.sampler.samples_of_step(), run.sampler.rampup);
    stream = std::make_shared<const dataset::edited_stream>(
        dataset::edited_positions(*run.order, run.edits, steps));
  }
  // A full validation of a run without an end covers its first epoch.
  const bool all_once = run.sampler.type == dataset::sampler_type::full_validation;
  dataset::sampler ranks(all_once ? run.samples : end, run.sampler, stream);
  std::int64_t listed = ranks.end_sample();
  if (run.sampler.type == dataset::sampler_type::single && run.has_end) {
    listed = std::min(listed, stream ? stream->served_before(run.samples) : run.samples);
  } else if (!all_once) {
    listed = std::min(listed, run.sampler.consumed_samples + run.samples);
  }
  return {std::move(ranks), listed};
}

}  // namespace millrace::inspect
