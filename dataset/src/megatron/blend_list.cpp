// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/blend_list.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

/// The ASCII characters that Python's str.strip() and str.split() treat as whitespace.
inline constexpr std::string_view python_spaces = " \t\n\v\f\r\x1c\x1d\x1e\x1f";

MILLRACE_INLINE std::string_view python_strip(std::string_view text) noexcept {
  const std::size_t first = text.find_first_not_of(python_spaces);
  if (first == text.npos) return {};
  return text.substr(first, text.find_last_not_of(python_spaces) - first + 1);
}

MILLRACE_INLINE std::vector<std::string> python_split(std::string_view text) {
  std::vector<std::string> words;
  while (!(text = python_strip(text)).empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(python_spaces));
    words.emplace_back(word);
    text.remove_prefix(word.size());
  }
  return words;
}

MILLRACE_INLINE bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

/// Removes underscores between digits. Returns nullopt if an underscore is anywhere else.
MILLRACE_INLINE std::optional<std::string> without_underscores(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '_') {
      plain += text[i];
    } else if (i == 0 || i + 1 == text.size() || !is_digit(text[i - 1]) || !is_digit(text[i + 1])) {
      return std::nullopt;
    }
  }
  return plain;
}

/// True if a word looks like "0,7", which is how some languages write 0.7.
MILLRACE_INLINE bool has_decimal_comma(std::string_view word) noexcept {
  const std::size_t comma = word.find(',');
  const auto all_digits = [](std::string_view part) {
    return !part.empty() && std::ranges::all_of(part, is_digit);
  };
  return comma != word.npos && all_digits(word.substr(0, comma)) &&
         all_digits(word.substr(comma + 1));
}

}  // namespace detail

MILLRACE_INLINE std::optional<double> read_python_float(std::string_view text) {
  const auto stripped = detail::without_underscores(detail::python_strip(text));
  if (!stripped || stripped->empty()) return std::nullopt;
  std::string number = *stripped;
  const bool negative = number[0] == '-';
  if (negative || number[0] == '+') number.erase(0, 1);
  std::string word = number;
  std::transform(word.begin(), word.end(), word.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  double value = 0;
  if (word == "inf" || word == "infinity") {
    value = std::numeric_limits<double>::infinity();
  } else if (word == "nan") {
    value = std::numeric_limits<double>::quiet_NaN();
  } else {
    // from_chars accepts more names than Python does, and it accepts a second sign. Reject both.
    if (word.empty() || (!detail::is_digit(word[0]) && word[0] != '.')) return std::nullopt;
    const auto [end, problem] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (end != word.data() + word.size() || problem == std::errc::invalid_argument) {
      return std::nullopt;
    }
    if (problem == std::errc::result_out_of_range) {
      value = is_beyond_one(word) ? std::numeric_limits<double>::infinity() : 0.0;
    }
  }
  return negative ? -value : value;
}

MILLRACE_INLINE blend_list parse_blend_list(std::span<const std::string> words,
                                            std::string_view option) {
  const std::string name(option);
  if (words.empty()) {
    throw config_error(name +
                       " has no value, expected prefixes, or alternating weights and prefixes");
  }
  const auto word = std::ranges::find_if(
      words, [](const std::string& each) { return detail::has_decimal_comma(each); });
  if (word != words.end()) {
    throw config_error(name + ": '" + *word +
                       "' is not a weight; write it with a decimal point, for example 0.7 (a "
                       "prefix with this name is ./" +
                       *word + ")");
  }
  blend_list list;
  std::size_t first_word = words.size();  // index of the first word in a weight position
  std::size_t first_number = words.size();
  for (std::size_t i = 0; words.size() % 2 == 0 && i < words.size(); i += 2) {
    const std::optional<double> weight = read_python_float(words[i]);
    std::size_t& first = weight ? first_number : first_word;
    first = std::min(first, i);
    if (weight) list.weights.push_back(*weight);
  }
  if (first_word < words.size() && first_number < words.size()) {
    throw config_error(name + ": '" + words[first_number] + "' (word " +
                       std::to_string(first_number + 1) + ") is a weight, and '" +
                       words[first_word] + "' (word " + std::to_string(first_word + 1) +
                       ") is not: expected a weight before each prefix, or before none");
  }
  const std::size_t step = list.weighted() ? 2 : 1;
  for (std::size_t i = step - 1; i < words.size(); i += step) {
    list.prefixes.emplace_back(detail::python_strip(words[i]));
    if (list.prefixes.back().empty()) {
      throw config_error(name + ": word " + std::to_string(i + 1) + " is empty, expected a prefix");
    }
  }
  for (std::size_t d = 0; d < list.weights.size(); ++d) {
    if (list.weights[d] > 0 && std::isfinite(list.weights[d])) continue;
    throw config_error(name + ": the weight of '" + list.prefixes[d] + "' is " + words[2 * d] +
                       ", expected a finite number above 0");
  }
  return list;
}

}  // namespace millrace::dataset
