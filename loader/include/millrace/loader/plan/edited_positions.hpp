// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include <millrace/dataset/run/batch_steps.hpp>
#include <millrace/dataset/run/edited_stream.hpp>
#include <millrace/dataset/run/edits.hpp>
#include <millrace/export.hpp>
#include <millrace/loader/plan/sample_plan.hpp>

namespace millrace::loader {

namespace detail {

/// The positions that hold a token of the documents that an edit blocks.
MILLRACE_EXPORT std::vector<dataset::position_range> blocked_positions(sample_plan& plan,
                                                                       const dataset::edit& e);

}  // namespace detail

/// The stream of a run that is edited.
///
/// @throws config_error  as `edited_stream`; documents are blocked that the run has not, or the run
///                       has no end
/// @throws io_error, format_error  a dataset with blocked documents cannot be read
MILLRACE_EXPORT dataset::edited_stream edited_positions(sample_plan& plan,
                                                        std::span<const dataset::edit> edits,
                                                        const dataset::batch_steps& steps);

}  // namespace millrace::loader
