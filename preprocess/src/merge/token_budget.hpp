// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <millrace/meta/dataset_meta.hpp>

#include "output/cut_points.hpp"
#include "process/stop_flag.hpp"

namespace millrace::preprocess {

/// The parts that a merge joins.
struct budgeted_parts {
  std::vector<std::filesystem::path> prefixes;
  /// The place of the first record that `--max-tokens` leaves out, e.g. "byte 7 of a.jsonl".
  std::optional<std::string> stopped_before = std::nullopt;
};

/// The end of a run with `--max-tokens`.
struct run_end {
  std::string stopped_before;  ///< as above
  std::size_t part = 0;        ///< the last part of which something stays, from 0
  cut_point point;             ///< `documents` of its counts is the number of documents that stay
  /// P.meta of what stays of that part. Its counts are still those of the whole part.
  formats::dataset_meta meta;
  std::size_t key = 0;  ///< the key of the parts in `point`
};

/// Finds the end of a run in the P.cuts of its parts: it is before the first document with which a
/// key would have too many tokens. Returns nothing if all documents stay.
///
/// @param metas       one per part
/// @param is_dropped  whether the tokens of a document do not count; documents are numbered across
///                    the parts, from 0. May be empty.
/// @throws config_error            a P.cuts is missing.
/// @throws io_error, format_error  a P.cuts cannot be read, or is not that of its part.
/// @throws stopped                 `stop` is set.
std::optional<run_end> find_run_end(std::span<const std::filesystem::path> parts,
                                    std::span<const formats::dataset_meta> metas,
                                    const std::function<bool(std::uint64_t)>& is_dropped,
                                    const stop_flag& stop);

/// Checks that parts are all the tasks of one run. Parts that are no tasks pass.
///
/// @param flag  the flag of the run because of which it must be all of them
/// @throws config_error  they are not.
void expect_tasks_of_one_run(std::span<const std::filesystem::path> parts,
                             std::vector<formats::dataset_meta> metas, std::string_view flag);

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
