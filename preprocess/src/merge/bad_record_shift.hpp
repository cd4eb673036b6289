// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace millrace::preprocess {

/// Converts a line of the P.bad file of one task to a line of the merged P.bad. Adds `lines_before`
/// to its line number, and sets `from_byte` to `whole_begin`, or removes `from_byte` if
/// `whole_begin` is 0.
///
/// @return nothing if the line has no `from_byte`. Its line number then already counts from the
///         start of its file.
std::optional<std::string> shifted_bad_line(std::string_view line, std::int64_t lines_before,
                                            std::uint64_t whole_begin);

}  // namespace millrace::preprocess
