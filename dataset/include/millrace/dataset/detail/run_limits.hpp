// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

/// How far the numbers of a run reach, so that what is computed of them fits 64 bits.
namespace millrace::dataset {

/// The last step that an edit or a schedule may name: with global batches of up to 2^22 samples its
/// first position is none beyond `most_positions`.
inline constexpr std::int64_t most_steps = std::int64_t{1} << 40;

/// Positions and samples of a run are below this: sums and doubles of them are still numbers.
inline constexpr std::int64_t most_positions = std::int64_t{1} << 62;

}  // namespace millrace::dataset
