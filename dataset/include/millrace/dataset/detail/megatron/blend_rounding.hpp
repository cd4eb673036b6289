// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::dataset {

/// How Megatron rounds weight * position - count when it blends datasets.
enum class blend_rounding {
  twice,  ///< product, then difference: Megatron as compiled for x86-64
  fused,  ///< once, by a fused multiply-add: compilers contract the same source this way on ARM
};

/// Its name in a saved state.
inline const char* name(blend_rounding rounding) noexcept {
  return rounding == blend_rounding::twice ? "twice" : "fused";
}

}  // namespace millrace::dataset
