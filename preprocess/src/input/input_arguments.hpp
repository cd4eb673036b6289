// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace millrace::preprocess {

/// Whether something has this name, be it a link to nothing.
///
/// @throws io_error  it cannot be asked.
bool exists(const std::string& path);

/// The paths that match a pattern with `*`, `?` or `[...]`, sorted by byte value; perhaps none.
///
/// @throws io_error  a folder on the way cannot be read.
std::vector<std::string> expand_pattern(const std::string& pattern);

/// The files of a folder as plan_inputs() has them.
///
/// @throws io_error      a folder cannot be read, or a link leads nowhere.
/// @throws config_error  there is no file, or a link to a folder.
std::vector<std::string> expand_folder(const std::string& folder);

/// The arguments of a list, named without its '@'.
///
/// @throws io_error      the file cannot be read.
/// @throws config_error  it names a list or has no line.
std::vector<std::string> expand_list(const std::string& path);

}  // namespace millrace::preprocess
