// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::preprocess {

/// Where in a record a text is: `record[path[0]][path[1]]...`.
struct text_key {
  std::string name;               ///< as the user wrote it; names messages and outputs
  std::vector<std::string> path;  ///< at least one key, outermost first
  bool operator==(const text_key&) const = default;
};

/// A key of the record itself. A dot in it is part of the key.
text_key plain_key(std::string name);
std::vector<text_key> plain_keys(std::vector<std::string> names);

/// `meta.text`: the key `text` of the object under `meta`.
///
/// @throws config_error  a key before, between or after dots is empty; the message names
///                       `--text-key`.
text_key key_of_path(std::string dotted);

}  // namespace millrace::preprocess
