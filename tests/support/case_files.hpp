// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

/// Reads files of tokenizer test cases. Each line holds a text or a list of ids.
namespace millrace::test {

inline std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

/// Returns the numbers in `text`. Every character that is not a digit acts as a separator.
inline std::vector<std::int32_t> numbers_in(std::string text) {
  for (char& c : text) {
    if (c < '0' || c > '9') c = ' ';
  }
  std::vector<std::int32_t> ids;
  std::istringstream in(text);
  for (std::int32_t id = 0; in >> id;) ids.push_back(id);
  return ids;
}

}  // namespace millrace::test
