// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Compares PREFIX.bin and PREFIX.idx with their checksums in PREFIX.sum. Makes one pass over both
/// files, in constant memory.
///
/// @return the root of the checksums, as hexadecimal digits; nullopt if there is no PREFIX.sum
/// @throws format_error  the `.sum` is invalid, or a block has changed since the `.sum` was
///                       written; the message has the byte range of the first changed block.
/// @throws io_error      a file cannot be read.
MILLRACE_EXPORT std::optional<std::string> verify_sums(const std::filesystem::path& prefix);

}  // namespace millrace::dataset
