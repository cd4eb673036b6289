// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <millrace/dataset/detail/megatron/blend_rounding.hpp>
#include <millrace/detail/export.hpp>

/// How Megatron interleaves datasets by weight, bit for bit: build_blending_indices and
/// build_exhaustive_blending_indices of megatron-core's helpers.
///
/// Sample i, with m = max(i, 1), goes to the dataset with the largest weight * m - count, where
/// count is what that dataset has given so far; of equals, to the first. Pure functions, any
/// thread.
namespace millrace::dataset {

/// Where a blend is written: for each sample its dataset and its number there.
struct blend_index_span {
  std::span<std::int16_t> dataset_index;
  std::span<std::int64_t> dataset_sample_index;  ///< as long
};

/// As many datasets as a blend may have: their numbers are int16, and Megatron stops one below.
inline constexpr std::size_t most_blended_datasets = 32766;

/// Fills `out`, whose length is the size of the blend.
///
/// @param weights  normalized: their sum is 1 but for rounding
/// @throws config_error  none or too many weights, or one that is not in 0 to 1
MILLRACE_EXPORT void fill_greedy_blend(std::span<const double> weights, blend_index_span out,
                                       blend_rounding rounding = blend_rounding::twice);

/// Fills `out` so that each dataset d gives exactly sizes[d] samples, spread as evenly as the
/// greedy choice among those not yet spent allows. `out` is as long as the sum of the sizes.
///
/// @throws config_error  none or too many sizes, one below 1, or a sum that is not the length of
///                       `out`
MILLRACE_EXPORT void fill_exhaustive_blend(std::span<const std::int64_t> sizes,
                                           blend_index_span out,
                                           blend_rounding rounding = blend_rounding::twice);

namespace detail {

/// @throws config_error  a blend cannot have so many datasets, or has none
void check_blended_count(std::size_t count);

/// The loops that can make a blend. All make the same one; the functions above take the best that
/// this processor has.
enum class greedy_kernel { plain, avx512 };

MILLRACE_EXPORT bool is_there(greedy_kernel kernel) noexcept;

/// A blend by one of them, so that tests can compare them.
/// @param limits  how many samples each dataset has; none where that is not looked at
/// @pre is_there(kernel); as many weights as a blend may have, each in 0 to 1
MILLRACE_EXPORT void fill_blend_by(greedy_kernel kernel, std::span<const double> weights,
                                   std::span<const std::int64_t> limits, blend_index_span out,
                                   blend_rounding rounding);

}  // namespace detail
}  // namespace millrace::dataset
