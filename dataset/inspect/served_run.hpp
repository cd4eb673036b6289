// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <variant>

#include <millrace/dataset/run/cyclic_run.hpp>
#include <millrace/dataset/run/edited_run.hpp>
#include <millrace/dataset/run/full_validation_run.hpp>

#include "run_flags.hpp"

namespace millrace::inspect {

/// Which sample it is of the run without edits, which is what edits count; nothing where no state
/// was given.
using unedited_position = std::function<std::optional<std::int64_t>(std::int64_t)>;

/// Calls visit(order, samples, unedited) with a run as it is served, passes and edits and all: an
/// order whose positions are those that ranks are dealt, and how many samples it has.
///
/// @param help  of the verb
/// @throws usage_error  the run with edits has no end
/// @throws config_error, io_error, format_error  as `stream_of`, and what `visit` throws
template <class Visit>
auto visit_served(const run_configuration& run, const std::string& help, const Visit& visit) {
  return std::visit(
      [&](const auto& order) {
        const unedited_position none = [](std::int64_t) { return std::nullopt; };
        if (run.sampler == run_sampler::full_validation) {
          const dataset::full_validation_run all(order, run.ranks.ranks(), run.samples);
          return visit(all, all.end(), none);
        }
        if (run.sampler == run_sampler::cyclic) {
          const dataset::data_share share{run.ranks.micro_batch_size(), run.ranks.ranks(), 0};
          return visit(dataset::cyclic_run(order, share, run.data_sharding), run.samples, none);
        }
        if (!run.has_state) return visit(order, run.samples, none);
        if (!run.has_end && order.end() > run.samples) {
          throw misuse("--train-samples is missing: edits move what is served, up to the run's end",
                       help);
        }
        const auto stream = dataset::stream_of(
            order, run.edits,
            [&](std::int64_t step) { return run.ranks.steps().first_position(step); }, order.end());
        return visit(dataset::edited_run(order, stream, run.edits),
                     stream.served_before(run.samples),
                     unedited_position([&](std::int64_t n) { return stream[n]; }));
      },
      run.order);
}

}  // namespace millrace::inspect
