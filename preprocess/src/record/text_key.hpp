// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::preprocess {

/// Where in a record a text is: `record[path[0]][path[1]]...`.
struct text_key {
  std::string name;               ///< as it was given: what messages and outputs are named by
  std::vector<std::string> path;  ///< at least one key, from the record inwards
  bool operator==(const text_key&) const = default;
};

/// One key of the record itself; a dot in it is a part of the key.
text_key plain_key(std::string name);
std::vector<text_key> plain_keys(std::vector<std::string> names);

/// `meta.text`: the key `text` of the object under `meta`.
///
/// @throws config_error  there is nothing before, between or behind dots; the sentence says so of
///                       `--text-key`.
text_key key_of_path(std::string dotted);

}  // namespace millrace::preprocess
