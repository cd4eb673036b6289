// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <millrace/dataset/run.hpp>
#include <millrace/dataset/sampler.hpp>

namespace millrace::dataset::detail {

/// Numbers the samples of a source over all passes of the `cyclic` sampler. The first sample of
/// pass p has the index p * n. Here, n is the number of samples per pass, rounded up to whole
/// rounds.
class pass_lengths {
 public:
  pass_lengths(const run& order, const sampler& ranks) {
    if (ranks.options().type != sampler_type::cyclic) return;  // one pass, possibly endless
    for (std::int64_t s = 0; s < order.source_count(); ++s) {
      const std::int64_t samples = order.taken(s, order.end());
      lengths_.push_back(samples == 0 ? 1 : order.round_of(s, samples - 1).last);
    }
  }

  /// The first sample of a source in a pass, as an index over all passes.
  std::int64_t first(std::int64_t pass, std::int64_t source) const noexcept {
    return lengths_.empty() ? 0 : pass * lengths_[static_cast<std::size_t>(source)];
  }
  bool has_passes() const noexcept { return !lengths_.empty(); }

 private:
  std::vector<std::int64_t> lengths_;  // [source]
};

}  // namespace millrace::dataset::detail
