// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "blend_error.hpp"
#include "greedy_groups.hpp"
#include "greedy_lanes.hpp"

#if defined(__x86_64__)
#include <immintrin.h>

/// The inner loops of a greedy blend with AVX-512: up to 64 groups stay in registers.
namespace millrace::dataset::detail {

#define MILLRACE_AVX512 __attribute__((target("avx512f,avx512dq,popcnt,bmi")))

struct avx512_kernel {
  static constexpr std::size_t most_lanes = 64;
  using lanes = greedy_lanes<most_lanes>;

  static bool is_there() noexcept {
    static const bool found =
        __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
        __builtin_cpu_supports("popcnt") != 0 && __builtin_cpu_supports("bmi") != 0;
    return found;
  }

  template <blend_rounding Rounding>
  MILLRACE_AVX512 static void errors(const greedy_groups& all, double position,
                                     double* keys) noexcept;
  MILLRACE_AVX512 static std::size_t above(const double* keys, std::size_t size,
                                           double floor) noexcept;
  MILLRACE_AVX512 static void pack(const greedy_groups& all, const double* keys, double floor,
                                   lanes& out) noexcept;
  template <blend_rounding Rounding>
  static std::int64_t steps(lanes& some, greedy_groups& all, blend_index_span out, std::int64_t at,
                            std::int64_t end, double floor) noexcept {
    if (some.used <= 8) return steps_of<Rounding, 1>(some, all, out, at, end, floor);
    if (some.used <= 16) return steps_of<Rounding, 2>(some, all, out, at, end, floor);
    if (some.used <= 32) return steps_of<Rounding, 4>(some, all, out, at, end, floor);
    return steps_of<Rounding, 8>(some, all, out, at, end, floor);
  }

 private:
  template <blend_rounding Rounding>
  MILLRACE_AVX512 static __m512d error(__m512d weights, __m512d position, __m512d counts) noexcept {
    if constexpr (Rounding == blend_rounding::twice) {
      __m512d product = _mm512_mul_pd(weights, position);
      asm("" : "+v"(product));  // as in `rounded`: no fused multiply-add
      return _mm512_sub_pd(product, counts);
    } else {
      return _mm512_fmsub_pd(weights, position, counts);
    }
  }

  // The unmasked intrinsics start from an undefined register, and GCC 12 warns about this.
  static constexpr __mmask8 all_lanes = 0xFF;
  MILLRACE_AVX512 static __m512d larger(__m512d a, __m512d b) noexcept {
    return _mm512_maskz_max_pd(all_lanes, a, b);
  }

  /// Of the lanes whose bits are set, returns the one whose next dataset has the lowest number. A
  /// loop is fast enough because ties are rare.
  static std::size_t first_of(std::uint64_t bits, const lanes& some,
                              const greedy_groups& all) noexcept {
    auto winner = static_cast<std::size_t>(__builtin_ctzll(bits));
    for (bits &= bits - 1; bits != 0; bits &= bits - 1) {
      const auto lane = static_cast<std::size_t>(__builtin_ctzll(bits));
      if (all.next_of(some.groups[lane]) < all.next_of(some.groups[winner])) winner = lane;
    }
    return winner;
  }

  template <blend_rounding Rounding, std::size_t Vectors>
  MILLRACE_AVX512 static std::int64_t steps_of(lanes& some, greedy_groups& all,
                                               blend_index_span out, std::int64_t at,
                                               std::int64_t end, double floor) noexcept;
};

template <blend_rounding Rounding>
void avx512_kernel::errors(const greedy_groups& all, double position, double* keys) noexcept {
  const __m512d at = _mm512_set1_pd(position);
  for (std::size_t g = 0; g < all.size(); g += 8) {
    const std::size_t left = all.size() - g;
    const auto mask = static_cast<__mmask8>(left >= 8 ? 0xFFU : (1U << left) - 1);
    _mm512_mask_storeu_pd(keys + g, mask,
                          error<Rounding>(_mm512_maskz_loadu_pd(mask, all.weights() + g), at,
                                          _mm512_maskz_loadu_pd(mask, all.counts() + g)));
  }
}

inline std::size_t avx512_kernel::above(const double* keys, std::size_t size,
                                        double floor) noexcept {
  const __m512d limit = _mm512_set1_pd(floor);
  int count = 0;
  for (std::size_t g = 0; g < size; g += 8) {
    const std::size_t left = size - g;
    const auto mask = static_cast<__mmask8>(left >= 8 ? 0xFFU : (1U << left) - 1);
    count += __builtin_popcount(
        _mm512_mask_cmp_pd_mask(mask, _mm512_maskz_loadu_pd(mask, keys + g), limit, _CMP_GT_OQ));
  }
  return static_cast<std::size_t>(count);
}

inline void avx512_kernel::pack(const greedy_groups& all, const double* keys, double floor,
                                lanes& out) noexcept {
  out.clear();
  const __m512d limit = _mm512_set1_pd(floor);
  for (std::size_t g = 0; g < all.size(); g += 8) {
    const std::size_t left = all.size() - g;
    const auto mask = static_cast<__mmask8>(left >= 8 ? 0xFFU : (1U << left) - 1);
    unsigned chosen =
        _mm512_mask_cmp_pd_mask(mask, _mm512_maskz_loadu_pd(mask, keys + g), limit, _CMP_GT_OQ);
    for (; chosen != 0; chosen &= chosen - 1) {
      const std::size_t group = g + static_cast<std::size_t>(__builtin_ctz(chosen));
      out.weights[out.used] = all.weights()[group];
      out.counts[out.used] = all.counts()[group];
      out.groups[out.used++] = static_cast<std::uint32_t>(group);
    }
  }
}

template <blend_rounding Rounding, std::size_t Vectors>
std::int64_t avx512_kernel::steps_of(lanes& some, greedy_groups& all, blend_index_span out,
                                     std::int64_t at, std::int64_t end, double floor) noexcept {
  __m512d weights[Vectors];
  __m512d counts[Vectors];
#pragma GCC unroll 8
  for (std::size_t v = 0; v < Vectors; ++v) {
    weights[v] = _mm512_load_pd(some.weights.data() + 8 * v);
    counts[v] = _mm512_load_pd(some.counts.data() + 8 * v);
  }
  const __m512d one = _mm512_set1_pd(1.0);
  for (; at < end; ++at) {
    const __m512d position = _mm512_set1_pd(blend_position(at));
    __m512d errors[Vectors];
    __m512d tree[Vectors];
#pragma GCC unroll 8
    for (std::size_t v = 0; v < Vectors; ++v) {
      errors[v] = error<Rounding>(weights[v], position, counts[v]);
      tree[v] = errors[v];
    }
#pragma GCC unroll 8
    for (std::size_t width = Vectors / 2; width > 0; width /= 2) {
#pragma GCC unroll 8
      for (std::size_t v = 0; v < width; ++v) tree[v] = larger(tree[v], tree[v + width]);
    }
    // Broadcast the largest error to all lanes.
    __m512d best = tree[0];
    best = larger(best, _mm512_maskz_shuffle_f64x2(all_lanes, best, best, 0x4E));
    best = larger(best, _mm512_maskz_shuffle_f64x2(all_lanes, best, best, 0xB1));
    best = larger(best, _mm512_maskz_permute_pd(all_lanes, best, 0x55));
    if (!(_mm512_cvtsd_f64(best) > floor)) break;

    __mmask8 equal[Vectors];
    std::uint64_t bits = 0;
#pragma GCC unroll 8
    for (std::size_t v = 0; v < Vectors; ++v) {
      equal[v] = _mm512_cmp_pd_mask(errors[v], best, _CMP_EQ_OQ);
      bits |= std::uint64_t{_cvtmask8_u32(equal[v])} << (8 * v);
    }
    const bool tie = (bits & (bits - 1)) != 0;
    const std::size_t winner =
        tie ? first_of(bits, some, all) : static_cast<std::size_t>(__builtin_ctzll(bits));
    const std::size_t group = some.groups[winner];
    const bool counted = all.take(group, at, out);
    const double count = all.counts()[group];
    if (!tie && counted && count < std::numeric_limits<double>::infinity()) {
      // Use the comparison's mask directly, because computing it from `winner` would delay the next
      // step.
#pragma GCC unroll 8
      for (std::size_t v = 0; v < Vectors; ++v) {
        counts[v] = _mm512_mask_add_pd(counts[v], equal[v], counts[v], one);
      }
    } else if (counted) {
      const __m512d changed = _mm512_set1_pd(count);
      const std::uint64_t bit = std::uint64_t{1} << winner;
#pragma GCC unroll 8
      for (std::size_t v = 0; v < Vectors; ++v) {
        counts[v] =
            _mm512_mask_mov_pd(counts[v], static_cast<__mmask8>((bit >> (8 * v)) & 0xFF), changed);
      }
    }
  }
  return at;
}

#undef MILLRACE_AVX512

}  // namespace millrace::dataset::detail
#endif
