// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <millrace/io/atomic_file.hpp>
#include <millrace/io/detail/dataset_files.hpp>

#include "process/stop_flag.hpp"

namespace millrace::preprocess {

/// A file that is or will be written, and its final size.
struct room_claim {
  /// null if the file is not open yet; its space is then checked for, but not reserved
  io::atomic_file* file = nullptr;
  std::uint64_t bytes = 0;
};

using io::free_bytes_of;

/// Returns the error message for a disk that is too small.
///
/// @param where   the output, or its folder
/// @param what    what the space is needed for
/// @param advice  what the user can do
std::string no_room(const std::filesystem::path& where, std::string_view what, std::uint64_t needed,
                    std::uint64_t free, std::string_view advice);

/// Checks that the disk has space for all the files together, then reserves the space. So a full
/// disk is detected now instead of hours later. Space that a file already occupies is not counted
/// again. If free_bytes_of() returns nothing, the check is skipped. If the file system cannot
/// reserve space or is in memory (tmpfs), only the check is done. If the file system compresses
/// data, the check still counts uncompressed bytes, so it may refuse files that would fit.
///
/// @param claims  files, all in the same folder
/// @param where, what, advice  as in no_room()
/// @throws error     the disk or a quota has too little space; the message says how much is
///                   missing.
/// @throws io_error  reserving the space failed for another reason.
/// @throws stopped   `stop` is set.
void reserve_all(std::span<const room_claim> claims, const std::filesystem::path& where,
                 std::string_view what, std::string_view advice, const stop_flag& stop = {});

}  // namespace millrace::preprocess
