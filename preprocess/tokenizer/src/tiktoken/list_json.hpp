// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

/// Places in a JSON list of values of any shape. simdjson's DOM says what is wrong with a file, not
/// where; these walk the text once more to find it, and only when there is something to report.
namespace millrace::tokenizer::detail {

/// Byte at which `json` stops being one JSON value: the first byte that cannot be there, or
/// json.size() where more was expected.
std::size_t list_json_end(std::string_view json);

/// Byte at which entry number `entry` (from 0) of the list begins, or list_json_end(json) where
/// there is none.
/// @param json  begins with the list's bracket, after white space
std::size_t list_json_entry(std::string_view json, std::size_t entry);

}  // namespace millrace::tokenizer::detail
