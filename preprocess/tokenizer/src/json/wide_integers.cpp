// SPDX-License-Identifier: Apache-2.0
#include "json/wide_integers.hpp"

#include <algorithm>
#include <cstddef>

namespace millrace::tokenizer::detail {
namespace {

constexpr std::size_t fewest_digits = 19;  // 2^63 has 19 digits

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_of_float(char c) {
  return c == '.' || c == 'e' || c == 'E' || c == '+';
}

// Overwrites the digits with d.ddde<count - 1>. Drops the last digits to make room for the rest.
void spell_as_float(char* digits, std::size_t count) {
  const std::string exponent = std::string(1, 'e').append(std::to_string(count - 1));
  std::copy_backward(digits + 1, digits + count - 1 - exponent.size(),
                     digits + count - exponent.size());
  digits[1] = '.';
  std::ranges::copy(exponent, digits + count - exponent.size());
}

}  // namespace

std::string with_floats_for_wide_integers(std::string_view json) {
  std::string changed(json);
  bool in_string = false;
  for (std::size_t at = 0; at < json.size(); ++at) {
    if (in_string) {
      if (json[at] == '\\') {
        ++at;
      } else {
        in_string = json[at] != '"';
      }
      continue;
    }
    in_string = json[at] == '"';
    if (!is_digit(json[at])) continue;
    const std::size_t begin = at;
    while (at < json.size() && is_digit(json[at])) ++at;
    const bool is_integer = (begin == 0 || !is_of_float(json[begin - 1])) &&
                            (at == json.size() || !is_of_float(json[at]));
    if (is_integer && json[begin] != '0' && at - begin >= fewest_digits) {
      spell_as_float(changed.data() + begin, at - begin);
    }
    --at;
  }
  return changed;
}

}  // namespace millrace::tokenizer::detail
