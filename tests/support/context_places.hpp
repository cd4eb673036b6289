// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::test {

/// Returns the places of a context-parallel rank's tokens in the whole row, in the order in which
/// the rank holds them. Like the kernel of Transformer Engine (`thd_get_partitioned_indices`), the
/// function first finds the document of each token and then the place in this document. A row that
/// is not packed counts as a single document, as in Megatron.
///
/// @param ends  end of each document in the whole row, ascending
inline std::vector<std::int64_t> places_of_rank(const std::vector<std::int64_t>& ends,
                                                std::int64_t cp, std::int64_t rank) {
  std::vector<std::int64_t> places;
  std::int64_t begin = 0;  // start of the current document in the whole row
  std::size_t d = 0;
  for (std::int64_t token = 0; token < ends.back() / cp; ++token) {
    while (token >= ends[d] / cp) begin = ends[d++];
    const std::int64_t chunk = (ends[d] - begin) / (2 * cp);
    const std::int64_t in_share = token - begin / cp;
    const std::int64_t number = in_share < chunk ? rank : 2 * cp - 1 - rank;
    places.push_back(begin + number * chunk + in_share % chunk);
  }
  return places;
}

}  // namespace millrace::test
