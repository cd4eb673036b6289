// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::preprocess {

/// Converts a line of one task's P.bad to a line of the merged P.bad. In P.bad, `line` is the line
/// number of a bad record, and `from_byte` is the byte of the input from which lines are counted.
/// Adds `lines_before` to `line`, and sets `from_byte` to `whole_begin`, or removes `from_byte` if
/// `whole_begin` is 0.
///
/// @return nothing if there is no `from_byte`. Then `line` already counts from the start of the
///         input.
std::optional<std::string> shifted_bad_line(std::string_view line, std::int64_t lines_before,
                                            std::uint64_t whole_begin);

}  // namespace millrace::preprocess
