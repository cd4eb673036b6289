// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace millrace::dataset {

/// How weight * position - count is rounded where Megatron blends datasets.
enum class blend_rounding {
  twice,  ///< the product, then the difference: Megatron as compiled on x86-64
  fused,  ///< once, by a fused multiply-add: as compilers contract the same source on ARM
};

/// What a state calls it.
inline const char* name(blend_rounding rounding) noexcept {
  return rounding == blend_rounding::twice ? "twice" : "fused";
}

}  // namespace millrace::dataset
