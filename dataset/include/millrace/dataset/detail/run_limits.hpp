// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// Limits on the steps and positions of a run, so that values computed from them fit in 64 bits.
namespace millrace::dataset {

/// The largest step that an edit or a schedule can refer to. Even with a global batch of 2^22
/// samples, the first position of this step does not exceed `most_positions`.
inline constexpr std::int64_t most_steps = std::int64_t{1} << 40;

/// All positions and sample indices of a run are below this limit, so that the sum of any two fits
/// in 64 bits.
inline constexpr std::int64_t most_positions = std::int64_t{1} << 62;

}  // namespace millrace::dataset
