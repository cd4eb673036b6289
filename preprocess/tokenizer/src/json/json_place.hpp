// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

/// Offsets in a JSON text. simdjson's DOM reports what is wrong with a file, but not where. These
/// functions scan the text again to find the place, only when there is an error to report.
namespace millrace::tokenizer::detail {

/// A path to a value. Each step is the index, from 0, of an entry of an object or an array.
using json_path = std::span<const std::size_t>;

/// Byte offset where the entry at the end of `path` begins. For an entry of an object, this is the
/// quote of its key. If the text is cut short, returns the offset of the last step that exists.
std::size_t json_place(std::string_view json, json_path path);

/// Byte offset where `json` stops being one JSON value: the first invalid byte, or `json.size()` if
/// the value is not complete. Supports any nesting depth.
std::size_t json_end(std::string_view json);

/// The texts of all numbers in the value at the end of `path`, in order.
/// @pre `json` is valid JSON and has that value
std::vector<std::string_view> json_numbers(std::string_view json, json_path path);

}  // namespace millrace::tokenizer::detail
