// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <string>
#include <system_error>

namespace millrace::preprocess {

/// Reads a whole text as one number. Returns false if it is something else.
template <class T>
bool parse_number(const std::string& text, T& value) {
  const char* const end = text.data() + text.size();
  const auto [stop, problem] = std::from_chars(text.data(), end, value);
  return problem == std::errc() && stop == end;
}

}  // namespace millrace::preprocess
