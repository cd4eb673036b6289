// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/megatron/split.hpp>

#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <millrace/dataset/detail/megatron/normalize.hpp>
#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

namespace detail {

/// Python's round(): to the nearest integer, ties to even.
MILLRACE_INLINE std::int64_t round_half_even(double value) noexcept {
  const double below = std::floor(value);
  const double above_it = value - below;  // exact
  const auto integer = static_cast<std::int64_t>(below);
  return integer +
         static_cast<std::int64_t>(above_it > 0.5 || (above_it == 0.5 && integer % 2 != 0));
}

/// Returns the numbers in the value of `--split`.
MILLRACE_INLINE std::vector<double> split_numbers(std::string_view text) {
  constexpr std::string_view of_a_number = ".0123456789";
  std::vector<double> numbers;
  for (;;) {
    const std::size_t first = text.find_first_of(of_a_number);
    if (first == text.npos) return numbers;
    text.remove_prefix(first);
    const std::string_view number = text.substr(0, text.find_first_not_of(of_a_number));
    double value = 0;
    const auto [end, problem] =
        std::from_chars(number.data(), number.data() + number.size(), value);
    if (problem != std::errc{} || end != number.data() + number.size()) {
      throw config_error("--split: '" + std::string(number) +
                         "' is not a number, expected three such as 969, 30, 1");
    }
    numbers.push_back(value);
    text.remove_prefix(number.size());
  }
}

}  // namespace detail

MILLRACE_INLINE split_matrix::split_matrix(std::string_view text) {
  std::vector<double> weights = detail::split_numbers(text);
  if (weights.size() > split_parts.size()) {
    throw config_error("--split '" + std::string(text) + "' has " + std::to_string(weights.size()) +
                       " numbers, expected at most three: train, valid and test");
  }
  weights.resize(split_parts.size());
  const double sum = numpy_sum(weights);
  if (!(sum > 0) || std::isinf(sum)) {
    throw config_error("--split '" + std::string(text) + "' adds up to " + python_float(sum) +
                       ", expected at least one finite number above 0");
  }
  const std::vector<double> shares = normalize(weights);
  for (std::size_t i = 0; i < shares.size(); ++i) bounds_[i + 1] = bounds_[i] + shares[i];
}

MILLRACE_INLINE sequence_range split_matrix::of(split_part part,
                                                std::int64_t sequences) const noexcept {
  if (!has(part)) return {};
  const auto count = static_cast<double>(sequences);
  return {detail::round_half_even(bounds_[index(part)] * count),
          detail::round_half_even(bounds_[index(part) + 1] * count)};
}

MILLRACE_INLINE python_json split_matrix::json() const {
  python_json rows = python_json::array();
  for (const split_part part : split_parts) {
    if (!has(part)) {
      rows.push_back({});
      continue;
    }
    // Megatron starts its sums with the integer 0, so the first bound is an integer and all others
    // are floats.
    const std::size_t i = index(part);
    rows.push_back(
        python_json::array({i == 0 ? python_json::integer(0) : python_json::real(bounds_[i]),
                            python_json::real(bounds_[i + 1])}));
  }
  return rows;
}

}  // namespace millrace::dataset
