// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

namespace millrace::preprocess {

/// Returns the prefixes of the datasets in a folder, sorted by the bytes of their names. Every file
/// of the folder must belong to a dataset, even a hidden file; subfolders are ignored.
///
/// @throws config_error  the folder has no dataset, or a file that belongs to no dataset or to an
///                       unfinished run.
/// @throws io_error      the folder cannot be read, or has a dangling link.
std::vector<std::filesystem::path> datasets_in(const std::filesystem::path& folder);

/// Checks that the output of a merge is not in its input folder.
///
/// @throws config_error  the output would be in the input folder.
/// @throws io_error      one of the folders cannot be examined.
void expect_another_folder(const std::filesystem::path& output_prefix,
                           const std::filesystem::path& input);

}  // namespace millrace::preprocess
