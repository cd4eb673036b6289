// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>

namespace millrace::preprocess {

/// More would need more open files than most machines allow.
inline constexpr int most_partitions = 1024;

/// PREFIX.part-00003, under which a partition of the dataset PREFIX waits for its place. None of
/// its files ever loses the `.partial` from its name.
std::filesystem::path part_prefix(std::filesystem::path prefix, std::size_t partition);

/// Removes what partitions of this dataset left, of this run or of an earlier one, however many
/// that had.
///
/// @throws io_error  the folder refuses.
void remove_part_files(const std::filesystem::path& prefix);

/// Sees to it that so many partitions of so many keys can be written side by side.
///
/// @throws config_error  the limit of open files is too low, and cannot be raised.
void expect_room_for_partitions(std::size_t keys, std::size_t partitions);

}  // namespace millrace::preprocess
