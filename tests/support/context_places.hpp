// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::test {

/// Returns the places in a whole row of the tokens of a context-parallel rank, in the rank's order.
/// Follows the kernel of Transformer Engine (`thd_get_partitioned_indices`): for each token of the
/// rank, it finds the document and the place in it. Megatron cuts a row that is not packed like a
/// single document.
///
/// @param ends  the ends of the documents of the whole row, in order
inline std::vector<std::int64_t> places_of_rank(const std::vector<std::int64_t>& ends,
                                                std::int64_t cp, std::int64_t rank) {
  std::vector<std::int64_t> places;
  std::int64_t begin = 0;  // of the document, in the whole row
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
