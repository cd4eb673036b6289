// SPDX-License-Identifier: Apache-2.0
#include "bpe/short_merge.hpp"

#include <bit>

#include "bpe/intrinsics.hpp"

namespace millrace::tokenizer::detail {
namespace {

void merge_portable(const pair_table& pairs, short_symbols& symbols) noexcept {
  std::uint32_t merges[short_symbols::capacity];  // of symbols i and i + 1
  std::uint32_t* const ids = symbols.ids;
  std::size_t count = symbols.count;
  for (std::size_t i = 0; i + 1 < count; ++i) merges[i] = pairs.find(ids[i], ids[i + 1]);
  while (count > 1) {
    std::size_t best = 0;
    for (std::size_t i = 1; i + 1 < count; ++i) {
      if (merges[i] < merges[best]) best = i;
    }
    if (merges[best] == pair_table::none) break;
    ids[best] = merges[best];
    --count;
    for (std::size_t i = best + 1; i < count; ++i) ids[i] = ids[i + 1];
    for (std::size_t i = best + 1; i + 1 < count; ++i) merges[i] = merges[i + 1];
    if (best > 0) merges[best - 1] = pairs.find(ids[best - 1], ids[best]);
    if (best + 1 < count) merges[best] = pairs.find(ids[best], ids[best + 1]);
  }
  symbols.count = count;
}

#if defined(__x86_64__)
// Up to 16 symbols: all of them in one register, their merges in another.
__attribute__((target("avx512f,avx512vl,bmi2"))) void merge_avx512(
    const pair_table& pairs, short_symbols& symbols) noexcept {
  std::uint32_t* const ids = symbols.ids;
  std::size_t count = symbols.count;
  alignas(64) std::uint32_t found[16];
  for (std::size_t i = 0; i + 1 < count; ++i) found[i] = pairs.find(ids[i], ids[i + 1]);
  const __m512i none = _mm512_set1_epi32(-1);
  const auto lanes = static_cast<__mmask16>((1U << (count - 1)) - 1);
  __m512i merges = _mm512_mask_loadu_epi32(none, lanes, found);
  __m512i all = _mm512_load_si512(ids);
  while (count > 1) {
    const std::uint32_t lowest = _mm512_reduce_min_epu32(merges);
    if (lowest == pair_table::none) break;
    const __m512i result = _mm512_set1_epi32(static_cast<int>(lowest));
    const auto best =
        static_cast<unsigned>(std::countr_zero(unsigned{_mm512_cmpeq_epi32_mask(merges, result)}));
    all = _mm512_mask_mov_epi32(all, static_cast<__mmask16>(1U << best), result);
    all = _mm512_maskz_compress_epi32(static_cast<__mmask16>(~(2U << best)), all);
    merges = _mm512_mask_compress_epi32(none, static_cast<__mmask16>(~(1U << best)), merges);
    _mm512_store_si512(ids, all);
    --count;
    if (best > 0) {
      const std::uint32_t left = pairs.find(ids[best - 1], lowest);
      merges = _mm512_mask_set1_epi32(merges, static_cast<__mmask16>(1U << (best - 1)),
                                      static_cast<int>(left));
    }
    if (best + 1 < count) {
      const std::uint32_t right = pairs.find(lowest, ids[best + 1]);
      merges = _mm512_mask_set1_epi32(merges, static_cast<__mmask16>(1U << best),
                                      static_cast<int>(right));
    }
  }
  symbols.count = count;
}
#endif

}  // namespace

void merge_short(const pair_table& pairs, short_symbols& symbols, instruction_set set) noexcept {
#if defined(__x86_64__)
  if (set == instruction_set::avx512 && symbols.count > 1 && symbols.count <= 16) {
    merge_avx512(pairs, symbols);
    return;
  }
#endif
  (void)set;
  merge_portable(pairs, symbols);
}

}  // namespace millrace::tokenizer::detail
