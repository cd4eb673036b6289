// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

namespace millrace::preprocess {

/// The prefixes of the datasets in a folder, sorted by the bytes of their names. Every file of the
/// folder must belong to a dataset, even a hidden one; subfolders are ignored.
///
/// @throws config_error  there is no dataset; or a file belongs to none, or to an unfinished run.
/// @throws io_error      the folder cannot be read, or has a dangling link.
std::vector<std::filesystem::path> datasets_in(const std::filesystem::path& folder);

/// @throws config_error  the output would be in the input folder.
/// @throws io_error      one of the folders cannot be examined.
void expect_another_folder(const std::filesystem::path& output_prefix,
                           const std::filesystem::path& input);

}  // namespace millrace::preprocess
