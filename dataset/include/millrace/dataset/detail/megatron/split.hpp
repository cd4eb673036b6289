// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <millrace/dataset/detail/megatron/python_json.hpp>
#include <millrace/dataset/detail/sequence_range.hpp>
#include <millrace/detail/export.hpp>

namespace millrace::dataset {

/// The parts that a dataset is split into, in Megatron's order.
enum class split_part : std::uint8_t { train, valid, test };
inline constexpr std::array<split_part, 3> split_parts = {split_part::train, split_part::valid,
                                                          split_part::test};

/// "train", "valid" or "test", as used in cache names.
constexpr std::string_view name(split_part part) noexcept {
  return std::array<std::string_view, 3>{"train", "valid", "test"}[static_cast<std::size_t>(part)];
}

/// Megatron's `--split`, e.g. "969, 30, 1": the shares of every dataset's sequences that go to
/// train, valid and test (megatron-core, blended_megatron_dataset_config.py).
///
/// A number consists of digits and points; any other character separates numbers. Missing numbers
/// are 0. Bounds are sums of the normalized weights, so the last bound is not always exactly 1.
class MILLRACE_EXPORT split_matrix {
 public:
  /// Megatron's default if `--data-path` is given without `--split`. Its spaces matter, because the
  /// text is hashed into the names of caches.
  static constexpr std::string_view default_text = "969, 30, 1";

  /// @throws config_error  a number is invalid or infinite; there are more than three; all are 0.
  explicit split_matrix(std::string_view text);

  /// True if the part has a weight. Megatron makes no dataset for a part without a weight.
  bool has(split_part part) const noexcept {
    return bounds_[index(part) + 1] > bounds_[index(part)];
  }

  /// Returns the part's range among `sequences` sequences. The ends of the range are the two bounds
  /// of the part times `sequences`, each rounded to the nearest integer, ties to even. The range is
  /// empty if the part has no weight.
  ///
  /// @pre 0 <= sequences < 2^52
  sequence_range of(split_part part, std::int64_t sequences) const noexcept;

  /// The split as written in Megatron's descriptions: pairs of bounds, null for a part without a
  /// weight.
  python_json json() const;

 private:
  static std::size_t index(split_part part) noexcept { return static_cast<std::size_t>(part); }

  std::array<double, 4> bounds_{};
};

// ---------------------------------------------------------------------------------------------

namespace detail {

/// Python's round(): to the nearest integer, ties to even.
MILLRACE_EXPORT std::int64_t round_half_even(double value) noexcept;

}  // namespace detail

}  // namespace millrace::dataset
