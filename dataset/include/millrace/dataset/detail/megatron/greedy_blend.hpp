// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include <millrace/dataset/detail/megatron/blend_rounding.hpp>
#include <millrace/detail/export.hpp>

/// Interleaves datasets by weight. The result is the same, bit for bit, as that of
/// `build_blending_indices` and `build_exhaustive_blending_indices` in megatron-core's helpers.
///
/// Sample i comes from the dataset with the largest weight * m - count. Here, m is max(i, 1), and
/// count is the number of samples that the dataset has contributed so far. Ties go to the first
/// dataset. Pure functions; thread-safe.
namespace millrace::dataset {

/// Output of a blend: for each sample, its dataset and its index in that dataset.
struct blend_index_span {
  std::span<std::int16_t> dataset_index;
  std::span<std::int64_t> dataset_sample_index;  ///< of the same length
};

/// Maximum number of datasets in a blend, because their indices are int16. Megatron's limit is one
/// lower.
inline constexpr std::size_t most_blended_datasets = 32766;

/// Fills `out`, whose length is the size of the blend.
///
/// @param weights  normalized: their sum is 1, up to rounding
/// @throws config_error  there are no weights or too many, or a weight is not in 0 to 1
MILLRACE_EXPORT void fill_greedy_blend(std::span<const double> weights, blend_index_span out,
                                       blend_rounding rounding = blend_rounding::twice);

/// Fills `out` so that each dataset d contributes exactly sizes[d] samples. Each sample is the
/// greedy choice among the datasets that are not yet exhausted. The length of `out` is the sum of
/// the sizes.
///
/// @throws config_error  there are no sizes or too many, a size is below 1, or their sum is not the
///                       length of `out`
MILLRACE_EXPORT void fill_exhaustive_blend(std::span<const std::int64_t> sizes,
                                           blend_index_span out,
                                           blend_rounding rounding = blend_rounding::twice);

namespace detail {

/// @throws config_error  `count` is 0 or above `most_blended_datasets`
void check_blended_count(std::size_t count);

/// Implementations of the blending loop. All produce the same blend; the functions above use the
/// fastest one that this processor supports.
enum class greedy_kernel { plain, avx512 };

MILLRACE_EXPORT bool is_there(greedy_kernel kernel) noexcept;

/// Blends with the given implementation, so that tests can compare the implementations.
/// @param limits  samples in each dataset; empty for no limits
/// @pre is_there(kernel); a valid number of weights, each in 0 to 1
MILLRACE_EXPORT void fill_blend_by(greedy_kernel kernel, std::span<const double> weights,
                                   std::span<const std::int64_t> limits, blend_index_span out,
                                   blend_rounding rounding);

}  // namespace detail
}  // namespace millrace::dataset
