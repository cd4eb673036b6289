// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfloat>
#include <cmath>

#include <millrace/dataset/detail/megatron/blend_rounding.hpp>

#if defined(__FAST_MATH__)
#error "Blends are compared bit by bit: compile without -ffast-math what includes this header."
#endif

/// By how much a dataset of a blend is behind, rounded as Megatron rounds it.
namespace millrace::dataset::detail {

static_assert(FLT_EVAL_METHOD == 0, "a double must be rounded to a double, not kept wider");

/// The same value, in a register of its own. Compilers may contract a product and a difference into
/// one rounding (GCC does by default where there is an instruction for it), whatever pragma a
/// header has; they cannot look through this.
inline double rounded(double product) noexcept {
#if defined(__x86_64__)
  asm("" : "+x"(product));
#elif defined(__aarch64__)
  asm("" : "+w"(product));
#else
  asm("" : "+m"(product));
#endif
  return product;
}

/// By how many samples a dataset is behind its share: the greedy blend serves who is furthest
/// behind. For weight >= 0 it never falls as `position` rises, nor rises as `count` does: both
/// roundings are monotonic.
template <blend_rounding Rounding>
inline double blend_error(double weight, double position, double count) noexcept {
  if constexpr (Rounding == blend_rounding::twice) {
    return rounded(weight * position) - count;
  } else {
    return std::fma(weight, position, -count);
  }
}

}  // namespace millrace::dataset::detail
