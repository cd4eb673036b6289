// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::dataset {

/// How Megatron rounds the expression weight * position - count when it blends datasets.
enum class blend_rounding {
  twice,  ///< rounds the product, then the difference: Megatron compiled for x86-64
  fused,  ///< rounds once, by a fused multiply-add: the same source code compiled for ARM
};

/// The rounding's name in a saved state.
inline const char* name(blend_rounding rounding) noexcept {
  return rounding == blend_rounding::twice ? "twice" : "fused";
}

}  // namespace millrace::dataset
