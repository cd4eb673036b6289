// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <filesystem>

namespace millrace::preprocess {

/// Largest number of partitions. More would need more open files than most machines allow.
inline constexpr int most_partitions = 1024;

/// Returns the prefix of a partition, such as PREFIX.part-00003 for a dataset PREFIX. The names of
/// a partition's files always end in `.partial`, because partitions never become final.
std::filesystem::path part_prefix(std::filesystem::path prefix, std::size_t partition);

/// Removes the partition files of this dataset that this run or earlier runs left. An earlier run
/// may have had any number of partitions.
///
/// @throws io_error  the files cannot be removed.
void remove_part_files(const std::filesystem::path& prefix);

/// Makes sure that the partitions of all keys can be written at the same time.
///
/// @throws config_error  the limit on open files is too low and cannot be raised.
void expect_room_for_partitions(std::size_t keys, std::size_t partitions);

}  // namespace millrace::preprocess
