// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "process/stop_flag.hpp"

namespace millrace::preprocess {

/// The parts that a merge joins.
struct budgeted_parts {
  std::vector<std::filesystem::path> prefixes;
  /// The place of the first record that `--max-tokens` leaves out, e.g. "byte 7 of a.jsonl".
  std::optional<std::string> stopped_before = std::nullopt;
};

/// Start of the name of the folder, beside the merged dataset, that within_budget() gets. Six
/// random characters follow. A kill leaves the folder.
std::string merge_folder(const std::filesystem::path& output_prefix);

/// Removes such folders of killed merges.
///
/// @pre no other process merges this dataset
/// @throws io_error  the folder of the dataset cannot be read, or a folder cannot be removed.
void remove_merge_folders(const std::filesystem::path& output_prefix);

/// Leaves out what one process would not have written because of `--max-tokens`: each task knows
/// its own tokens alone. Finds the first document with which a key would have too many tokens, in
/// the P.cuts of the parts. Leaves out the parts that follow, and replaces the last one by a copy
/// of the documents before that document.
///
/// @param parts   prefixes of the parts, in order
/// @param folder  gets the files of the copy; must be empty
/// @pre have_budget(parts)
/// @throws config_error  the parts are not all tasks of one run with one limit, or a P.cuts is
///                       missing.
/// @throws io_error, format_error  a part cannot be read or does not match its checksums, or the
///                                 copy cannot be written.
/// @throws error    the disk has too little space for the copy.
/// @throws stopped  `stop` is set.
budgeted_parts within_budget(std::span<const std::filesystem::path> parts,
                             const std::filesystem::path& folder, const stop_flag& stop);

/// Whether within_budget() may need a folder: some part has a P.cuts, or its P.meta says that it
/// comes from a task with `--max-tokens`.
bool have_budget(std::span<const std::filesystem::path> parts);

}  // namespace millrace::preprocess
