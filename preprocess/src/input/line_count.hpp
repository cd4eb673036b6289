// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>

#include "input/input_plan.hpp"

namespace millrace::preprocess {

/// Returns the number of lines before `begin` in an uncompressed file. Returns an empty optional
/// for other inputs, or if the file cannot be read. Reads everything before `begin`, so use it only
/// for messages.
///
/// @pre a line begins at `begin`
std::optional<std::int64_t> lines_before(const input_file& file, std::uint64_t begin);

}  // namespace millrace::preprocess
