// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cfloat>
#include <cmath>

#include <millrace/dataset/detail/megatron/blend_rounding.hpp>

#if defined(__FAST_MATH__)
#error "Blends are compared bit by bit: compile without -ffast-math what includes this header."
#endif

/// The error of a dataset in a blend: how many samples it lags behind its share. The arithmetic is
/// rounded as in Megatron.
namespace millrace::dataset::detail {

static_assert(FLT_EVAL_METHOD == 0, "a double must be rounded to a double, not kept wider");

/// Returns `product`, hidden from the optimizer. Otherwise, compilers may contract a product and a
/// difference into one operation with a single rounding. No pragma in a header prevents this. GCC
/// contracts by default if the processor has an instruction for it.
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

/// Returns how many samples a dataset lags behind its share; the greedy blend serves the dataset
/// that lags most. For weight >= 0, the result never decreases as `position` increases and never
/// increases as `count` increases, because both roundings are monotonic.
template <blend_rounding Rounding>
inline double blend_error(double weight, double position, double count) noexcept {
  if constexpr (Rounding == blend_rounding::twice) {
    return rounded(weight * position) - count;
  } else {
    return std::fma(weight, position, -count);
  }
}

}  // namespace millrace::dataset::detail
