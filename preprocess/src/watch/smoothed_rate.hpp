// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace millrace::preprocess {

/// Computes the recent rate per second, as an exponentially weighted mean with a half-life of ten
/// seconds. This rate does not jump with each block, and it soon forgets the slow start of a run.
class smoothed_rate {
 public:
  /// @param total    total amount so far; never less than in the last call
  /// @param seconds  time since the start. If it is not later than in the last call, nothing
  ///                 changes.
  void update(double total, double seconds) {
    const double passed = seconds - seconds_;
    if (!(passed > 0)) return;
    const double kept = std::exp2(-passed / half_life_seconds);
    sum_ = sum_ * kept + (total - total_) / passed * (1 - kept);
    weight_ = weight_ * kept + (1 - kept);
    total_ = total;
    seconds_ = seconds;
  }

  double per_second() const { return weight_ > 0 ? sum_ / weight_ : 0; }

 private:
  static constexpr double half_life_seconds = 10;

  double sum_ = 0;
  double weight_ = 0;  // total weight so far; without it, the first rates would be near zero
  double total_ = 0;
  double seconds_ = 0;
};

}  // namespace millrace::preprocess
