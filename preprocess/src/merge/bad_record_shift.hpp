// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::preprocess {

/// A line of a task's P.bad as one of the whole's: adds `lines_before` to the number of the line,
/// and has it count from `whole_begin` of the file, which is not told where that is 0.
///
/// @return nothing if the line counts from the start of its file anyway.
std::optional<std::string> shifted_bad_line(std::string_view line, std::int64_t lines_before,
                                            std::uint64_t whole_begin);

}  // namespace millrace::preprocess
