// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace millrace::command {

/// The number with commas between groups of three digits: "34,386,381". Use it in summaries that
/// people read; JSON output has plain numbers.
inline std::string grouped(std::int64_t number) {
  std::string text = std::to_string(number);
  const std::size_t first = number < 0 ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3;) text.insert(at -= 3, 1, ',');
  return text;
}

/// The number with its noun: "1 token", "12,345 tokens".
inline std::string grouped(std::int64_t count, std::string_view noun) {
  return grouped(count) + ' ' + std::string(noun) + (count == 1 ? "" : "s");
}

}  // namespace millrace::command
