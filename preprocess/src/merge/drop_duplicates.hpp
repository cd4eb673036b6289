// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <span>

#include "merge/merge.hpp"
#include "record/duplicates_by.hpp"

namespace millrace::preprocess {

/// Concatenates parts like merge(), but drops each document that repeats an earlier one. Writes
/// what it dropped to P.duplicates, if all parts have a P.src.
///
/// Reads the tokens of the parts once to find the duplicates (not with duplicates_by::text), and
/// once to copy the documents that stay. A temporary file has 40 bytes per document.
///
/// @param parts     prefixes of the parts, in order
/// @param options   `input` is only named in messages
/// @throws config_error, io_error, format_error, error, stopped  as merge(). config_error also if
///         the parts are only some tasks of a run, or if `by` is `text` and a P.digests is missing.
merge_summary write_without_duplicates(std::span<const std::filesystem::path> parts,
                                       const merge_options& options, const duplicate_options& how);

/// What the run of these parts drops duplicates by: they are tasks with `--drop-duplicates`.
/// Returns nothing for other parts.
///
/// Does not check that all parts are tasks of one run: write_without_duplicates() does.
///
/// @throws io_error, format_error  a P.meta cannot be read.
std::optional<duplicates_by> duplicates_of_tasks(std::span<const std::filesystem::path> parts);

}  // namespace millrace::preprocess
