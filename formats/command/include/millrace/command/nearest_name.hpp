// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace millrace::command {

/// The smallest number of one-letter insertions, deletions and replacements that turn one word into
/// the other.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Distances from a prefix of `a` to each prefix of `b`.
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

/// Returns the name that the user may have meant: the shortest name that begins with `typed`. If no
/// name begins with `typed`, returns the name with the smallest edit distance. This distance must
/// be at most a third of the name's length. Returns an empty text if no name qualifies.
inline std::string_view nearest_name(std::string_view typed, std::span<const std::string> names) {
  if (typed.empty()) return {};
  std::string_view nearest;
  for (const std::string& name : names) {
    if (!name.starts_with(typed)) continue;
    if (nearest.empty() || name.size() < nearest.size()) nearest = name;
  }
  if (!nearest.empty()) return nearest;
  std::size_t least = 0;
  for (const std::string& name : names) {
    const std::size_t distance = edit_distance(typed, name);
    if (3 * distance > name.size()) continue;
    if (!nearest.empty() && distance >= least) continue;
    nearest = name;
    least = distance;
  }
  return nearest;
}

}  // namespace millrace::command
