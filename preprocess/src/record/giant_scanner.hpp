// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "record/line_window.hpp"
#include "record/record_parser.hpp"
#include "record/text_key.hpp"

namespace millrace::preprocess {

/// The place in a line where the value of a key begins. The value is a string or a list of strings.
struct giant_value {
  std::uint64_t offset_bytes = 0;
};

/// Does the same as `exact_json`, but for a line that is too long for memory. Uses the same
/// scanner, so faults have the same offsets and messages. Needs memory only for the keys and for a
/// window, which holds some bytes of the line.
///
/// @param window_bytes  at least line_window::least_bytes
/// @param[out] values  one value per key; set only if no fault is returned
/// @throws io_error  as line_window.
std::optional<record_fault> scan_giant_line(const line_range& line, std::span<const text_key> keys,
                                            std::size_t window_bytes,
                                            std::vector<giant_value>& values);

}  // namespace millrace::preprocess
