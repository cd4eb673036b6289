// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include "merge/merge_input.hpp"
#include "merge/merge_target.hpp"
#include "merge/merged_layout.hpp"
#include "process/stop_flag.hpp"

namespace millrace::preprocess {

/// Checks that a part can be merged with the first part.
///
/// @throws config_error  the two parts have different dtypes, or `multimodal` is set and `part` has
///                       no modes.
void expect_fits(const merge_input& part, const merge_input& first, bool multimodal);

/// Reopens a part whose size was measured when it was first opened.
///
/// @throws io_error  the part was replaced in the meantime: its size is no longer `extent`.
merge_input reopen(const std::filesystem::path& prefix, const dataset_extent& extent);

/// Writes the tokens and the index of a part to their places in the merged dataset, in constant
/// memory. If the merged dataset has a P.sum, verifies the part against the part's P.sum.
///
/// @param before  total size of the parts that precede this part
/// @throws io_error, format_error  the part cannot be read, or does not match its checksums or its
///                                 own index; or the merged dataset cannot be written.
/// @throws stopped                 `stop` is set; the function checks it every few MiB.
void place_part(const merge_input& part, const dataset_extent& before, merge_target& target,
                const stop_flag& stop);

}  // namespace millrace::preprocess
