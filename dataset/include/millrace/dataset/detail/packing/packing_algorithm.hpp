// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace millrace::dataset {

/// How documents are packed into rows.
enum class packing_algorithm : std::uint8_t {
  /// Best-fit decreasing, in blocks of 4,096 documents (`best_fit`). Cuts a document that is longer
  /// than a row.
  best_fit,
  /// The algorithms below pack all documents of a dataset at once (`row_plan`). Every document must
  /// fit into a row. The first two are Megatron-Bridge's, and depend on a seed.
  first_fit_decreasing,
  first_fit_shuffle,
  /// Johnson and Garey's algorithm, in the variant of Megatron-LM's pull request 5017 and NeMo RL.
  modified_first_fit_decreasing,
  /// Each document is a row, as in Megatron-LM's SFTDataset with one conversation per line.
  one_per_row,
};

inline constexpr std::array<std::string_view, 5> packing_algorithm_names = {
    "best_fit", "first_fit_decreasing", "first_fit_shuffle", "modified_first_fit_decreasing",
    "one_per_row"};

inline constexpr std::string_view name(packing_algorithm algorithm) noexcept {
  return packing_algorithm_names[static_cast<std::size_t>(algorithm)];
}

/// Returns nullopt if no algorithm has this name.
inline constexpr std::optional<packing_algorithm> packing_algorithm_of(
    std::string_view name) noexcept {
  for (std::size_t i = 0; i < packing_algorithm_names.size(); ++i) {
    if (packing_algorithm_names[i] == name) return static_cast<packing_algorithm>(i);
  }
  return std::nullopt;
}

/// How documents fill rows.
struct packing_report {
  std::int64_t rows = 0;
  std::int64_t documents = 0;
  std::int64_t tokens = 0;    ///< tokens in the rows' documents
  std::int64_t padding = 0;   ///< padding tokens in the rows
  std::int64_t left_out = 0;  ///< documents that are in no row, because they are longer than a row

  double padding_share() const noexcept {
    return tokens + padding == 0
               ? 0.0
               : static_cast<double>(padding) / static_cast<double>(tokens + padding);
  }
};

}  // namespace millrace::dataset
