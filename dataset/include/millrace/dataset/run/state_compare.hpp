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

/// What may differ between the state that was saved and the run that goes on.
struct resume_terms {
  /// Options by their names in the state ("seed", "data", "edits"): their difference is not looked
  /// at, and the samples to come are those of the new value.
  std::vector<std::string> allow = {};
  /// Steps of which the saved run has served a sample, edits counted in: up to that of the furthest
  /// position. Segments of a schedule may not change before. Needed where the batch is ramped up;
  /// else it follows from consumed_samples, and from saved_stream, which is needed with edits.
  std::optional<std::int64_t> steps_done = {};
  /// The streams of both lists of edits, where edits were added: nothing that was served may move.
  /// Without them, edits may be added that say since when.
  const edited_stream* saved_stream = nullptr;
  const edited_stream* new_stream = nullptr;
};

/// Whether a run may go on from a saved state, so that every sample comes as it would have.
///
/// - Every option must be the same; `samples`, and whether datasets are weighted, only where the
///   order is megatron, which depends on them; the rounding only of its blends.
/// - Datasets are the same by their roots, or, where one has none, by their sizes. Their place may
///   be another; their names only where the order is megatron: instant is keyed by them.
/// - A schedule may change from the steps on that are not done; it may then have more datasets.
/// - Edits may be added behind those that were saved, where they leave what was served as it was;
///   none that was saved may go, be it of samples that are to come.
/// - `cyclic` may change its ranks and micro-batch only where both make the same position the start
///   of an epoch: consumed_samples is a multiple of the samples that an epoch has under each.
///
/// @throws config_error  they differ; the message names the first difference, with both values.
MILLRACE_EXPORT void require_same(const run_state& saved, const run_state& now,
                                  const resume_terms& terms = {});

}  // namespace millrace::dataset
