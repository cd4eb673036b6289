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

/// Leaves out what one process would not have written because of `--max-tokens`: each task knows
/// its own tokens alone. Parts without that limit, and whole datasets, stay as they are. Otherwise,
/// finds the first document with which a key would have too many tokens, in the P.cuts of the
/// parts. Leaves out the parts that follow, and replaces the last one by a copy of the documents
/// before that document.
///
/// @param parts   prefixes of the parts, in order
/// @param folder  gets the files of the copy; must be empty
/// @throws config_error  the parts are not all tasks of one run with one limit, or a P.cuts is
///                       missing.
/// @throws io_error, format_error  a part cannot be read or does not match its checksums, or the
///                                 copy cannot be written.
/// @throws error    the disk has too little space for the copy.
/// @throws stopped  `stop` is set.
budgeted_parts within_budget(std::span<const std::filesystem::path> parts,
                             const std::filesystem::path& folder, const stop_flag& stop);

/// Whether within_budget() may need a folder: the P.meta of some part says that it comes from a
/// task with `--max-tokens`.
bool have_budget(std::span<const std::filesystem::path> parts);

}  // namespace millrace::preprocess
