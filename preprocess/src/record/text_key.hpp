// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace millrace::preprocess {

/// The place of a text in a record: `record[path[0]][path[1]]...`.
struct text_key {
  std::string name;               ///< as the user wrote it; used in messages and output names
  std::vector<std::string> path;  ///< at least one key, outermost first
  bool operator==(const text_key&) const = default;
};

/// Returns a top-level key of the record. A dot in `name` is part of the key.
text_key plain_key(std::string name);
std::vector<text_key> plain_keys(std::vector<std::string> names);

/// Parses a path whose keys are separated by dots. For example, `meta.text` is the key `text` of
/// the object that is the value of `meta`.
///
/// @throws config_error  a key in the path is empty; the message names `--text-key`.
text_key key_of_path(std::string dotted);

}  // namespace millrace::preprocess
