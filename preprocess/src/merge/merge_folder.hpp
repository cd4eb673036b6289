// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <vector>

namespace millrace::preprocess {

/// The prefixes of the datasets in a folder, sorted by the bytes of their names. Every file of the
/// folder must belong to one, hidden files too; folders in it are passed over.
///
/// @throws config_error  there is none, a file belongs to none, or is of a run that did not finish.
/// @throws io_error      the folder cannot be read, or has a link to nowhere.
std::vector<std::filesystem::path> datasets_in(const std::filesystem::path& folder);

/// @throws config_error  the output would lie in the input folder.
/// @throws io_error      one of the folders cannot be looked at.
void expect_another_folder(const std::filesystem::path& output_prefix,
                           const std::filesystem::path& input);

}  // namespace millrace::preprocess
