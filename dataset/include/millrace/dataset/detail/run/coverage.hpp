// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace millrace::dataset {

/// A change of the count: token `at` of a stream has the count of the preceding token plus
/// `change`.
struct count_change {
  std::int64_t at = 0;
  std::int64_t change = 0;
};

/// For each token of a stream, counts how many of the added ranges contain it. Adjacent ranges
/// merge. So the memory depends on the number of offsets where the count changes, not on the number
/// of ranges.
class coverage {
 public:
  /// Increases the count of every token in the range [first, last) by `times`.
  void add(std::int64_t first, std::int64_t last, std::int64_t times = 1) {
    if (first >= last) return;
    changes_.push_back({first, times});
    changes_.push_back({last, -times});
    tokens_ += (last - first) * times;
    if (changes_.size() >= settle_at_) settle();
  }

  /// The sum of the counts of all tokens.
  std::int64_t tokens() const noexcept { return tokens_; }

  /// Number of changes in memory. May be more than necessary until `changes` is called.
  std::size_t size() const noexcept { return changes_.size(); }

  /// The offsets where the count changes, ascending.
  const std::vector<count_change>& changes() {
    settle();
    return changes_;
  }

 private:
  void settle() {
    std::ranges::sort(changes_, {}, &count_change::at);
    std::size_t kept = 0;
    for (std::size_t i = 0; i < changes_.size();) {
      count_change sum{changes_[i].at, 0};
      for (; i < changes_.size() && changes_[i].at == sum.at; ++i) sum.change += changes_[i].change;
      if (sum.change != 0) changes_[kept++] = sum;
    }
    changes_.resize(kept);
    settle_at_ = std::max<std::size_t>(2 * kept, 4096);
  }

  std::vector<count_change> changes_;
  std::size_t settle_at_ = 4096;
  std::int64_t tokens_ = 0;
};

}  // namespace millrace::dataset
