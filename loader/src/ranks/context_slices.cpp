// SPDX-License-Identifier: Apache-2.0
#include <millrace/loader/detail/ranks/context_slices.hpp>

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include <millrace/dataset/detail/sample/piece.hpp>

namespace millrace::loader {

MILLRACE_INLINE std::vector<dataset::piece> pieces_of(std::span<const dataset::piece> pieces,
                                                      const row_slice& part) {
  std::vector<dataset::piece> result;
  std::int64_t begin = 0;  // start of the piece in the text
  for (const dataset::piece& each : pieces) {
    const std::int64_t end = begin + each.tokens;
    const std::int64_t first = std::max(begin, part.first);
    const std::int64_t last = std::min(end, part.first + part.length);
    if (first < last) {
      dataset::piece cut = each;
      cut.first += first - begin;
      cut.tokens = last - first;
      result.push_back(cut);
    }
    begin = end;
  }
  return result;
}

}  // namespace millrace::loader
