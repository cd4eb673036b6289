// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// Compares PREFIX.bin and PREFIX.idx with their checksums in PREFIX.sum: one pass over both, in
/// constant memory.
///
/// @return the root, as hexadecimal digits; nothing if there is no PREFIX.sum
/// @throws format_error  the `.sum` is none; or the first block that is not what it was when it was
///                       written, with its bytes.
/// @throws io_error      a file cannot be read.
MILLRACE_EXPORT std::optional<std::string> verify_sums(const std::filesystem::path& prefix);

}  // namespace millrace::dataset
