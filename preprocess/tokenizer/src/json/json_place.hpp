// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Offsets in a JSON text. simdjson's DOM reports what is wrong with a file, but not where. If
/// there is an error to report, these functions scan the text again to find its place.
namespace millrace::tokenizer::detail {

/// A path to a value. Each step is the index (from 0) of an entry in an object or an array.
using json_path = std::span<const std::size_t>;

/// Byte offset where the entry at the end of `path` begins. An entry of an object begins at the
/// opening quote of its key. If the path does not exist in full, returns the offset at which the
/// search for its first missing step stops.
std::size_t json_place(std::string_view json, json_path path);

/// Byte offset where `json` stops being one JSON value: the offset of the first invalid byte, or
/// `json.size()` if the value is not complete. Supports any nesting depth.
std::size_t json_end(std::string_view json);

/// The texts of all numbers in the value at the end of `path`, in order.
/// @pre `json` is valid JSON, and the value exists
std::vector<std::string_view> json_numbers(std::string_view json, json_path path);

/// Returns `json` with each integer of 19 digits or more replaced by a float of the same size in
/// bytes. The float keeps fewer digits. This is needed because simdjson refuses integers above 64
/// bits, but files contain them: `transformers` writes 10^30 as model_max_length. Accepts any text.
/// Does not change the contents of strings.
std::string with_floats_for_wide_integers(std::string_view json);

}  // namespace millrace::tokenizer::detail
