// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>

#include "merge/merge_input.hpp"
#include "merge/merge_target.hpp"
#include "merge/merged_layout.hpp"
#include "process/stop_flag.hpp"

namespace millrace::preprocess {

/// @throws config_error  the part's dtype is another than that of `first`, or it has no modes and
///                       `multimodal` asks for them.
void expect_fits(const merge_input& part, const merge_input& first, bool multimodal);

/// Opens a part again that was looked at before.
/// @throws io_error  it was replaced since: it does not hold `extent` any more.
merge_input reopen(const std::filesystem::path& prefix, const dataset_extent& extent);

/// Writes the tokens and the index of a part to its place in the whole, in constant memory, and
/// holds the part against its P.sum, if the whole has one.
///
/// @param before  all parts before it
/// @throws io_error, format_error  the part cannot be read, or is not what its checksums or its own
///                                 index say; the whole cannot be written.
/// @throws stopped                 `stop` is set; the function checks it every few MiB.
void place_part(const merge_input& part, const dataset_extent& before, merge_target& target,
                const stop_flag& stop);

}  // namespace millrace::preprocess
