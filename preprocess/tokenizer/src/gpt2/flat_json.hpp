// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

/// Places in a JSON object of scalars. simdjson's DOM says what is wrong with a file, not where;
/// these walk the text once more to find it, and only when there is something to report.
namespace millrace::tokenizer::detail {

/// Byte at which entry number `entry` (from 0) of the object begins: that of its key's quote.
std::size_t flat_json_entry(std::string_view json, std::size_t entry);

/// Byte at which `json` stops being one object of strings to scalars: the first byte that cannot
/// be there, or `json.size()` where more was expected.
std::size_t flat_json_end(std::string_view json);

}  // namespace millrace::tokenizer::detail
