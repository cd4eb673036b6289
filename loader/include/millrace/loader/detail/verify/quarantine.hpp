// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include <millrace/dataset/state.hpp>
#include <millrace/detail/export.hpp>
#include <millrace/loader/detail/verify/finding.hpp>

/// From bad blocks to a run without their documents: edits, which are explicit, recorded in the
/// state, and the same on every rank, where leaving samples out on the way would be none of these.
namespace millrace::loader {

/// The edits that keep bad blocks out of a run, and what no edit can.
struct quarantine {
  std::vector<dataset::edit> edits;     ///< by source and document, each document once
  std::vector<std::string> not_edited;  ///< sentences: faults of an `.idx` or a `.sum`
};

/// The documents that lie in blocks with findings, whole, as `block` edits.
///
/// @param since  samples that were served when the edits begin to hold: the `consumed_samples` of
///               the state that the run goes on from. Later, and samples between the two are served
///               as they were; earlier, and what was served would have changed, which is refused.
/// @throws io_error, format_error  the index of a dataset cannot be read
MILLRACE_EXPORT quarantine quarantine_of(std::span<const finding> findings, std::int64_t since);

/// Writes edits as a state that has nothing else, whole or not at all.
/// @throws io_error  it cannot be written
/// @throws config_error  a name in it is not UTF-8
MILLRACE_EXPORT void write_quarantine(const std::filesystem::path& path,
                                      std::span<const dataset::edit> edits);

/// The edits that were written. They are for the end of the state's own.
/// @throws io_error, format_error, config_error  it cannot be read, or is none
MILLRACE_EXPORT std::vector<dataset::edit> read_quarantine(const std::filesystem::path& path);

}  // namespace millrace::loader
