// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <millrace/dataset/megatron/normalize.hpp>
#include <millrace/dataset/megatron/python_json.hpp>
#include <millrace/error.hpp>

namespace millrace::dataset {

/// What a dataset is split into, in Megatron's order.
enum class split_part : std::uint8_t { train, valid, test };
inline constexpr std::array<split_part, 3> split_parts = {split_part::train, split_part::valid,
                                                          split_part::test};

/// "train", "valid" or "test": as in names of caches.
constexpr std::string_view name(split_part part) noexcept {
  return std::array<std::string_view, 3>{"train", "valid", "test"}[static_cast<std::size_t>(part)];
}

/// Sequences from `first` up to but without `last`.
struct sequence_range {
  std::int64_t first = 0;
  std::int64_t last = 0;

  std::int64_t size() const noexcept { return last - first; }
  friend bool operator==(const sequence_range&, const sequence_range&) = default;
};

/// Megatron's `--split`, e.g. "969, 30, 1": which part of the sequences of every dataset each of
/// train, valid and test takes (megatron-core, blended_megatron_dataset_config.py).
///
/// Numbers are runs of digits and points, whatever stands between them; missing ones are 0. Bounds
/// are sums of the normalized weights, so the last need not be exactly 1.
class split_matrix {
 public:
  /// What Megatron takes where `--data-path` is given and `--split` is not. It enters hashes with
  /// its spaces.
  static constexpr std::string_view default_text = "969, 30, 1";

  /// @throws config_error  a number is none, or infinite; there are more than three; all are 0.
  explicit split_matrix(std::string_view text);

  /// Whether the part has a weight: Megatron has no dataset for one that has none.
  bool has(split_part part) const noexcept {
    return bounds_[index(part) + 1] > bounds_[index(part)];
  }

  /// The part's share of `sequences`: each bound times their number, rounded to the nearest, from
  /// the middle to the even one. Empty without a weight.
  ///
  /// @pre 0 <= sequences < 2^52
  sequence_range of(split_part part, std::int64_t sequences) const noexcept;

  /// As Megatron's descriptions have it: pairs of bounds, null for a part without a weight.
  python_json json() const;

 private:
  static std::size_t index(split_part part) noexcept { return static_cast<std::size_t>(part); }

  std::array<double, 4> bounds_{};
};

// ---------------------------------------------------------------------------------------------

namespace detail {

/// Python's round(): to the nearest integer, from the middle to the even one.
inline std::int64_t round_half_even(double value) noexcept {
  const double below = std::floor(value);
  const double above_it = value - below;  // exact
  const auto integer = static_cast<std::int64_t>(below);
  return integer +
         static_cast<std::int64_t>(above_it > 0.5 || (above_it == 0.5 && integer % 2 != 0));
}

/// The numbers in a text of `--split`.
inline std::vector<double> split_numbers(std::string_view text) {
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

inline split_matrix::split_matrix(std::string_view text) {
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

inline sequence_range split_matrix::of(split_part part, std::int64_t sequences) const noexcept {
  if (!has(part)) return {};
  const auto count = static_cast<double>(sequences);
  return {detail::round_half_even(bounds_[index(part)] * count),
          detail::round_half_even(bounds_[index(part) + 1] * count)};
}

inline python_json split_matrix::json() const {
  python_json rows = python_json::array();
  for (const split_part part : split_parts) {
    if (!has(part)) {
      rows.push_back({});
      continue;
    }
    // Megatron starts its sums with the integer 0, and only the first bound is still that.
    const std::size_t i = index(part);
    rows.push_back(
        python_json::array({i == 0 ? python_json::integer(0) : python_json::real(bounds_[i]),
                            python_json::real(bounds_[i + 1])}));
  }
  return rows;
}

}  // namespace millrace::dataset
