// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

/// Places in a JSON text. simdjson's DOM says what is wrong with a file, not where; these walk the
/// text once more to find it, and only when there is something to report.
namespace millrace::tokenizer::detail {

/// One step down: to entry number `index` of an object or an array, from 0.
using json_path = std::span<const std::size_t>;

/// Byte at which the entry at the end of `path` begins (in an object, that of its key's quote); of
/// the last step that there is, where the text is cut short.
std::size_t json_place(std::string_view json, json_path path);

/// Byte at which `json` stops being one JSON value: the first that cannot be there, or
/// `json.size()` where more was expected. Of any depth.
std::size_t json_end(std::string_view json);

/// The numbers in the value at the end of `path`, as they are written, in their order.
/// @pre `json` is JSON and has that value
std::vector<std::string_view> json_numbers(std::string_view json, json_path path);

}  // namespace millrace::tokenizer::detail
