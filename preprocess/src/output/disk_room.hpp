// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <millrace/io/atomic_file.hpp>

#include "process/stop_flag.hpp"

namespace millrace::preprocess {

/// A file that is being written, and how large it will become.
struct room_claim {
  io::atomic_file* file = nullptr;  ///< null: not opened yet, so its space is only counted
  std::uint64_t bytes = 0;
};

/// Bytes that this process may still write to the file system of `folder`. Nothing if unknown:
/// statvfs fails, or reports a size of 0 blocks, as for FUSE file systems without statfs.
std::optional<std::uint64_t> free_bytes_of(const std::filesystem::path& folder);

/// The error message for a disk that is too small.
///
/// @param where   the output, or its folder
/// @param what    what the space is for
/// @param advice  what the user can do
std::string no_room(const std::filesystem::path& where, std::string_view what, std::uint64_t needed,
                    std::uint64_t free, std::string_view advice);

/// Checks that the disk has space for all the files together, then reserves it, so that a full disk
/// is detected now and not hours later. Space that a file already has is not counted again. The
/// check is skipped if free_bytes_of() returns nothing. On a file system that cannot reserve space,
/// only the check is done. If that file system compresses, the check counts uncompressed bytes and
/// may refuse what would fit.
///
/// @param claims  files of one folder
/// @param where, what, advice  as in no_room()
/// @throws error     the disk, or a quota, has less space; the message says how much is missing.
/// @throws io_error  reserving the space failed for another reason.
/// @throws stopped   `stop` is set.
void reserve_all(std::span<const room_claim> claims, const std::filesystem::path& where,
                 std::string_view what, std::string_view advice, const stop_flag& stop = {});

}  // namespace millrace::preprocess
