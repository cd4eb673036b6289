// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/verify/verify_report.hpp>

/// Removes the documents of bad blocks from a run, by means of edits. Edits are explicit, recorded
/// in the state, and the same on every rank. Skipping samples while loading would have none of
/// these properties.
namespace millrace::loader {

/// The edits that keep bad blocks out of a run, and the faults that no edit can fix.
struct quarantine {
  std::vector<dataset::edit> edits;     ///< sorted by source and document, without overlaps
  std::vector<std::string> not_edited;  ///< one sentence per fault in an `.idx` or a `.sum`
};

/// Returns edits that block all documents with bytes in faulty blocks (kind
/// `dataset::edit_kind::block`).
///
/// @param since  number of samples that are served before the edits take effect. Pass the
///               `consumed_samples` of the state from which the run resumes. With a larger number,
///               the samples in between are served unedited. With a smaller number, the edits would
///               change samples that were already served, so resuming fails.
/// @throws io_error, format_error  the index of a dataset cannot be read
MILLRACE_EXPORT quarantine quarantine_of(std::span<const finding> findings, std::int64_t since);

/// Writes edits as a state that contains nothing else. An existing file is replaced atomically.
/// @throws io_error  the file cannot be written
/// @throws config_error  a name in an edit is not UTF-8
MILLRACE_EXPORT void write_quarantine(const std::filesystem::path& path,
                                      std::span<const dataset::edit> edits);

/// Reads the edits that `write_quarantine` wrote. Append them to the state's own edits.
/// @throws io_error, format_error  the file cannot be read or is invalid
MILLRACE_EXPORT std::vector<dataset::edit> read_quarantine(const std::filesystem::path& path);

}  // namespace millrace::loader
