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
  io::atomic_file* file = nullptr;  ///< null: not opened yet, so its room is only counted
  std::uint64_t bytes = 0;
};

/// Bytes that this process may still write to the file system of `folder`; nothing if that is not
/// known: statvfs fails, or reports a size of 0 blocks, as for FUSE file systems without statfs.
std::optional<std::uint64_t> free_bytes_of(const std::filesystem::path& folder);

/// The sentence that refuses a disk which is too small.
///
/// @param where   the output, or its folder
/// @param what    what the room is for
/// @param advice  what the user can do
std::string no_room(const std::filesystem::path& where, std::string_view what, std::uint64_t needed,
                    std::uint64_t free, std::string_view advice);

/// Checks that the disk has room for all the files together, then sets the room aside, so that a
/// full disk is known now and not hours later. Room that a file has already is not counted again.
/// Where free_bytes_of() is nothing, the check is left out. On a file system that cannot set room
/// aside, only the check is done; if it compresses, the check counts uncompressed bytes and may
/// refuse what would fit.
///
/// @param claims  files of one folder
/// @param where, what, advice  as no_room()
/// @throws error     the disk, or a quota, has less room; the message says how much is missing.
/// @throws io_error  setting the room aside failed for another reason.
/// @throws stopped   `stop` is set.
void reserve_all(std::span<const room_claim> claims, const std::filesystem::path& where,
                 std::string_view what, std::string_view advice, const stop_flag& stop = {});

}  // namespace millrace::preprocess
