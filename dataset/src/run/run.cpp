// SPDX-License-Identifier: Apache-2.0
#include <millrace/dataset/run.hpp>

#include <cstdint>
#include <span>
#include <vector>

#include <millrace/dataset/detail/sample/piece.hpp>

namespace millrace::dataset {

MILLRACE_INLINE void run::starts_of(const source_sample&, std::span<const piece> pieces,
                                    std::vector<std::int64_t>& out) const {
  out.clear();
  std::int64_t at = 0;
  for (const piece& p : pieces) {
    out.push_back(at);
    at += p.tokens;
  }
}

}  // namespace millrace::dataset
