// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include <millrace/dataset/detail/megatron/blend_list.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// The blends of train, valid and test, in this order; nothing for a part without one.
using part_blends = std::array<std::optional<blend_list>, 3>;

/// The text of a file for `--per-split-data-args-path`: a JSON object with the keys train, valid
/// and test, each null, a text of words, or an array of words; weights may be numbers.
///
/// @param option  as for `parse_blend_list`; the key is added
/// @throws format_error  it is no JSON
/// @throws config_error  a key is missing, a value is something else, or its words are no blend
MILLRACE_EXPORT part_blends read_part_blends(std::string_view json, std::string_view option);

}  // namespace millrace::dataset
