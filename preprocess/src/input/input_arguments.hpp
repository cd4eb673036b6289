// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace millrace::preprocess {

/// Whether this path exists. A dangling link counts.
///
/// @throws io_error  the path cannot be checked.
bool exists(const std::string& path);

/// The paths that match a pattern with `*`, `?` or `[...]`, sorted by byte value; perhaps none.
///
/// @throws io_error  a folder along the path cannot be read.
std::vector<std::string> expand_pattern(const std::string& pattern);

/// The files of a folder, selected and ordered as plan_inputs() says.
///
/// @throws io_error      a folder cannot be read, or a link is dangling.
/// @throws config_error  there is no file, or there is a link to a folder.
std::vector<std::string> expand_folder(const std::string& folder);

/// The arguments in a list. `path` has no leading '@'.
///
/// @throws io_error      the file cannot be read.
/// @throws config_error  it names another list, or all its lines are blank.
std::vector<std::string> expand_list(const std::string& path);

}  // namespace millrace::preprocess
