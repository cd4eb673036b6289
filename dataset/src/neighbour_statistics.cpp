// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/detail/neighbour_statistics.hpp>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include <millrace/dataset/detail/document_sources.hpp>
#include <millrace/dataset/indexed_dataset.hpp>

namespace millrace::dataset {

namespace detail {

/// Sums over pairs (x, y), computed in one pass.
struct pair_moments {
  double n = 0, x = 0, y = 0, xx = 0, yy = 0, xy = 0;

  void add(double a, double b) noexcept {
    n += 1;
    x += a;
    y += b;
    xx += a * a;
    yy += b * b;
    xy += a * b;
  }
  std::optional<double> correlation() const {
    const double spread = (n * xx - x * x) * (n * yy - y * y);
    if (!(spread > 1e-9 * n * n)) return std::nullopt;
    return (n * xy - x * y) / std::sqrt(spread);
  }
};

MILLRACE_INLINE double log_length(const indexed_dataset& data, std::int64_t d) {
  const document_range range = data.document(d);
  std::int64_t tokens = 0;
  for (std::int64_t i = range.first; i < range.last; ++i) tokens += data.sequence_length(i);
  return std::log2(1 + static_cast<double>(tokens));
}

}  // namespace detail

MILLRACE_INLINE neighbour_statistics look_at_neighbours(const indexed_dataset& data,
                                                        const document_sources* sources) {
  constexpr std::int64_t run = 1024;
  constexpr std::int64_t most_runs = 256;
  const std::int64_t documents = data.document_count();
  const std::int64_t runs = std::min((documents + run - 1) / run, most_runs);
  neighbour_statistics result;
  detail::pair_moments lengths;
  std::map<std::uint32_t, std::int64_t> inputs;
  std::int64_t pairs = 0;
  std::int64_t same = 0;
  for (std::int64_t r = 0; r < runs; ++r) {
    // The runs are evenly spread; the last run is at the end of the dataset.
    const std::int64_t first =
        runs < most_runs ? r * run
                         : static_cast<std::int64_t>(static_cast<double>(documents - run) *
                                                     static_cast<double>(r) / (most_runs - 1));
    const std::int64_t last = std::min(first + run, documents);
    double length_before = 0;
    std::uint32_t input_before = 0;
    for (std::int64_t d = first; d < last; ++d) {
      const double length = detail::log_length(data, d);
      const std::uint32_t input = sources != nullptr ? sources->at(d).input : 0;
      if (d != first) {
        lengths.add(length_before, length);
        same += input == input_before;
        ++pairs;
      }
      ++inputs[input];
      ++result.documents;
      length_before = length;
      input_before = input;
    }
  }
  result.length_correlation = lengths.correlation();
  if (sources != nullptr && pairs != 0) {
    result.same_input = static_cast<double>(same) / static_cast<double>(pairs);
    double chance = 0;
    for (const auto& [input, count] : inputs) {
      const double part = static_cast<double>(count) / static_cast<double>(result.documents);
      chance += part * part;
    }
    result.same_input_shuffled = chance;
  }
  return result;
}

MILLRACE_INLINE std::string neighbour_statistics::warning() const {
  if (documents < 1000) return {};
  // For n random pairs, the correlation exceeds 5 / sqrt(n) about once in a million cases.
  const double bound = std::max(0.1, 5 / std::sqrt(static_cast<double>(documents)));
  const auto percent = [](double part) {
    return std::to_string(static_cast<std::int64_t>(std::lround(100 * part))) + " %";
  };
  std::string text;
  if (length_correlation && *length_correlation > bound) {
    text += "neighboring documents have similar lengths (correlation " +
            std::to_string(*length_correlation).substr(0, 4) + ", 0 if shuffled)";
  }
  if (same_input && *same_input - *same_input_shuffled > bound) {
    text += std::string(text.empty() ? "" : "; ") + percent(*same_input) +
            " of neighboring documents come from the same input, " + percent(*same_input_shuffled) +
            " if shuffled";
  }
  if (text.empty()) return {};
  return text +
         "; for orders that keep neighbors together, such as instant, shuffle them once with "
         "merge_datasets --shuffle-documents";
}

}  // namespace millrace::dataset
