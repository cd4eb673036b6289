// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>

#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// What `repair_pointers` did.
struct pointer_repair {
  std::filesystem::path path;  ///< the new file; empty if all pointers were right
  std::int64_t changed = 0;    ///< number of pointers that were wrong
  std::int64_t sequences = 0;  ///< number of pointers
  bool proven = false;         ///< the new file has the checksums in PREFIX.sum
};

/// Computes the pointers of PREFIX.idx again, from the lengths. Writes PREFIX.idx.repaired, which
/// appears complete or not at all; no file of the dataset changes.
///
/// Only the pointers follow from the rest of the files. So the header, the lengths and the document
/// index must be valid, and the lengths must add up to the size of PREFIX.bin. If there is a
/// PREFIX.sum, the new file must have its checksums.
///
/// @throws format_error  something else is wrong, too, so that a repair would have to guess; the
///                       message names its file and byte. Nothing is written.
/// @throws io_error      a file cannot be read or written
MILLRACE_EXPORT pointer_repair repair_pointers(const std::filesystem::path& prefix);

}  // namespace millrace::dataset
