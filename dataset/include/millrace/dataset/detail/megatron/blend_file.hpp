// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include <millrace/dataset/detail/megatron/blend_list.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// The blends for train, valid and test, in this order; nothing for a part without a blend.
using part_blends = std::array<std::optional<blend_list>, 3>;

/// Parses the text of a file for `--per-split-data-args-path`: a JSON object with the keys train,
/// valid and test. Each value is null, a string of words, or an array of words; weights may be
/// numbers.
///
/// @param option  as for `parse_blend_list`; the key is appended
/// @throws format_error  the text is not JSON
/// @throws config_error  a key is missing, a value has another type, or its words are not a blend
MILLRACE_EXPORT part_blends read_part_blends(std::string_view json, std::string_view option);

}  // namespace millrace::dataset
