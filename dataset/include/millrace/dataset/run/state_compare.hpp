// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <millrace/dataset/run/state.hpp>
#include <millrace/export.hpp>

namespace millrace::dataset {

class edited_stream;

/// Differences that are allowed between a saved state and the run that resumes from it.
struct resume_terms {
  /// Names of options in the state ("seed", "data", "edits") that may differ. The samples to come
  /// are those of the new value.
  std::vector<std::string> allow = {};
  /// Number of steps from which the saved run has served a sample, with edits: up to the step of
  /// the furthest position. Earlier segments of a schedule may not change. Required with a
  /// batch-size ramp-up. Otherwise it follows from consumed_samples and, with edits, from
  /// saved_stream.
  std::optional<std::int64_t> steps_done = {};
  /// The streams of both lists of edits, if edits were added. They must serve the same samples up
  /// to now. Without them, each added edit must say since when it applies.
  const edited_stream* saved_stream = nullptr;
  const edited_stream* new_stream = nullptr;
};

/// Checks that a run can resume from a saved state, so that it serves every sample as the saved run
/// would have.
///
/// - Every option must be the same. `samples` and `weighted` are compared only for megatron, which
///   depends on them, and the rounding only for its blends.
/// - Datasets are the same if their roots are, or their sizes if one has no root. Their paths may
///   differ. Their names may differ only for megatron, because they are keys of instant.
/// - A schedule may change from the first step that is not done, and may then have more datasets.
/// - Edits may be appended if the samples that were served stay the same. Saved edits may not be
///   removed, even if they concern future samples.
/// - `cyclic` may change its ranks and micro-batch size only at the start of an epoch under both:
///   consumed_samples must be a multiple of the samples per epoch of each.
///
/// Example: resume with another seed.
///
///     void resume(const millrace::dataset::run_state& saved,
///                 const millrace::dataset::run_state& now) {
///       millrace::dataset::require_same(saved, now, {.allow = {"seed"}});
///     }
///
/// @throws config_error  they differ; the message names the first difference and both values.
MILLRACE_EXPORT void require_same(const run_state& saved, const run_state& now,
                                  const resume_terms& terms = {});

}  // namespace millrace::dataset
