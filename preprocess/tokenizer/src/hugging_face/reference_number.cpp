// SPDX-License-Identifier: Apache-2.0
#include "hugging_face/reference_number.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

namespace millrace::tokenizer::detail {
namespace {

constexpr int largest_power = 308;
constexpr std::int64_t exponent_limit = 1000000000;  // beyond this, every value is 0 or infinite

double power_of_ten(std::int64_t exponent) noexcept {
  std::array<char, 8> text{'1', 'e'};
  const auto end = std::to_chars(text.data() + 2, text.data() + text.size(), exponent).ptr;
  double value = 0;
  std::from_chars(text.data(), end, value);
  return value;
}

double scaled(double value, std::int64_t exponent) noexcept {
  while (exponent < -largest_power && value != 0) {
    value /= power_of_ten(largest_power);
    exponent += largest_power;
  }
  if (value == 0) return value;
  if (exponent > largest_power) return std::numeric_limits<double>::infinity();
  return exponent >= 0 ? value * power_of_ten(exponent) : value / power_of_ten(-exponent);
}

bool is_digit(std::string_view text, std::size_t at) noexcept {
  return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

}  // namespace

double reference_number(std::string_view number) noexcept {
  const bool negative = number.starts_with('-');
  std::size_t at = negative ? 1 : 0;
  std::uint64_t digits = 0;
  std::int64_t exponent = 0;
  bool full = false;
  const auto take = [&](char c) {
    const auto digit = static_cast<std::uint64_t>(c - '0');
    constexpr std::uint64_t most = std::numeric_limits<std::uint64_t>::max();
    full = full || digits > most / 10 || digits * 10 > most - digit;
    if (!full) digits = digits * 10 + digit;
  };
  for (; is_digit(number, at); ++at) {
    take(number[at]);
    exponent += full;
  }
  if (at < number.size() && number[at] == '.') {
    full = false;  // counts a digit that fits, even after one that did not
    for (++at; is_digit(number, at); ++at) {
      take(number[at]);
      exponent -= !full;
    }
  }
  if (at < number.size()) {  // 'e'
    ++at;
    const bool down = number.substr(at).starts_with('-');
    if (down || number.substr(at).starts_with('+')) ++at;
    std::int64_t given = 0;
    for (; is_digit(number, at); ++at) {
      given = std::min(given * 10 + (number[at] - '0'), exponent_limit);
    }
    exponent += down ? -given : given;
  }
  const double value = scaled(static_cast<double>(digits), exponent);
  return negative ? -value : value;
}

}  // namespace millrace::tokenizer::detail
