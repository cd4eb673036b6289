// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include <millrace/dataset/detail/verify.hpp>
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

/// What `repair_checksums` did.
struct checksum_repair {
  std::filesystem::path path;  ///< the new file; empty if the old one is right
  std::int64_t changed = 0;    ///< blocks whose checksum differs or was not known
  std::int64_t blocks = 0;     ///< number of checksums
  std::string root;            ///< root of the new checksums, as hexadecimal digits
  /// The files are as they were written, because `root` was known. Otherwise the new file says
  /// that earlier changes are unknown (version 2 of formats/spec/sum.md).
  bool proven = false;
};

/// Computes the checksums of PREFIX.bin and PREFIX.idx again. Writes PREFIX.sum.repaired, which
/// appears complete or not at all; no file of the dataset changes. The new checksums accept
/// whatever the files hold now, so use this only for files that were changed on purpose.
///
/// @param known_root  root of the checksums when the files were written, such as that in
///                    PREFIX.meta, as hexadecimal digits
/// @throws format_error  the `.idx` is invalid, or does not fit the `.bin`
/// @throws io_error      a file cannot be read or written
MILLRACE_EXPORT checksum_repair repair_checksums(const std::filesystem::path& prefix,
                                                 const std::optional<std::string>& known_root,
                                                 const verify_options& options = {});

}  // namespace millrace::dataset
