// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace millrace::preprocess {

/// Returns whether this path exists. A dangling link counts as existing.
///
/// @throws io_error  the path cannot be checked.
bool exists(const std::string& path);

/// The paths that match a pattern with `*`, `?` or `[...]`, sorted by byte value. The result may be
/// empty.
///
/// @throws io_error  a folder along the path cannot be read.
std::vector<std::string> expand_pattern(const std::string& pattern);

/// The files of a folder, selected and ordered as plan_inputs() describes.
///
/// @throws io_error      a folder cannot be read, or a link is dangling.
/// @throws config_error  the folder has no file, or contains a link to a folder.
std::vector<std::string> expand_folder(const std::string& folder);

/// The arguments in the list file `path` (`--input @FILE`; `path` is FILE without the `@`).
///
/// @throws io_error      the file cannot be read.
/// @throws config_error  the list names another list, or all its lines are blank.
std::vector<std::string> expand_list(const std::string& path);

}  // namespace millrace::preprocess
