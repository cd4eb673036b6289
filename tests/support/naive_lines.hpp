// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::test {

struct naive_line {
  std::size_t offset = 0;  ///< offset of the line's first byte in the whole text
  std::string text;        ///< without its line terminator
};

/// Splits a text at Python's universal newlines, one character at a time.
inline std::vector<naive_line> naive_lines_at(std::string_view text) {
  std::vector<naive_line> lines;
  naive_line line;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\n' && text[i] != '\r') {
      line.text += text[i];
      continue;
    }
    if (text[i] == '\r' && i + 1 < text.size() && text[i + 1] == '\n') ++i;
    lines.push_back(line);
    line = {i + 1, ""};
  }
  if (!line.text.empty()) lines.push_back(line);
  return lines;
}

inline std::vector<std::string> naive_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (naive_line& line : naive_lines_at(text)) lines.push_back(std::move(line.text));
  return lines;
}

/// Calls `work` for each text that has at most `longest` characters, all of them from `alphabet`.
inline void for_all_texts(std::string_view alphabet, std::size_t longest,
                          const std::function<void(const std::string&)>& work) {
  std::vector<std::string> texts = {""};
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const std::string text = texts[i];
    work(text);
    if (text.size() == longest) continue;
    for (const char c : alphabet) texts.push_back(text + c);
  }
}

}  // namespace millrace::test
