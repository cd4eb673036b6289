// SPDX-License-Identifier: Apache-2.0
#include "bpe/short_merge.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include "split/intrinsics.hpp"

namespace millrace::tokenizer::detail {
namespace {

std::uint32_t bits_below(std::size_t count) noexcept {
  return static_cast<std::uint32_t>((std::uint64_t{1} << count) - 1);
}

// The index of the lowest bit that is set.
std::uint32_t lowest_bit(std::uint32_t bits) noexcept {
  return static_cast<std::uint32_t>(std::countr_zero(bits)) % 32;
}

bool start_portable(const pair_table& pairs, std::string_view text, short_word& word) noexcept {
  const auto byte = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(text[i])}; };
  std::int32_t lowest = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::int32_t id = pairs.byte_ids()[byte(i)];
    lowest = std::min(lowest, id);
    word.symbols[i] = static_cast<std::uint32_t>(id);
    word.merges[i] =
        i + 1 < text.size() ? pairs.byte_pairs()[byte(i) << 8 | byte(i + 1)] : pair_table::none;
  }
  std::fill(word.merges + text.size(), word.merges + short_word::max_bytes, pair_table::none);
  return lowest >= 0;
}

// The line of an open pair that is none. It holds no pair.
constexpr pair_table::line no_line{};

// Fetches no line for a pair that does not exist, as at the edges of a word. Has no branch for it.
inline short_word::open_pair open(const pair_table& pairs, std::uint64_t pair,
                                  std::uint32_t bit) noexcept {
  const auto exists = std::uintptr_t{0} - static_cast<std::uintptr_t>(bit != 0);
  const auto none = reinterpret_cast<std::uintptr_t>(&no_line);
  const auto first = reinterpret_cast<std::uintptr_t>(&pairs.line_of(pair));
  // NOLINTNEXTLINE(performance-no-int-to-ptr): with a choice of pointers, GCC 12 makes a branch
  const auto* line = reinterpret_cast<const pair_table::line*>(none ^ ((none ^ first) & exists));
  __builtin_prefetch(line);
  return {pair, line, bit};
}

// What is stored for the symbol of the lowest bit that is set.
inline std::uint32_t& merge_at(short_word& word, std::uint32_t bits) noexcept {
  static_assert(std::countr_zero(std::uint32_t{0}) == short_word::max_bytes);
  return word.merges[std::countr_zero(bits)];
}

// Merges a symbol with the next one, and prefetches the cache lines of the two new pairs. Has no
// branches, because they would be unpredictable.
inline void replace(const pair_table& pairs, short_word& word, std::uint32_t place,
                    std::uint32_t result) noexcept {
  const std::uint32_t bit = std::uint32_t{1} << place;
  const std::uint32_t behind = word.there & (0U - bit) & ~bit;
  const std::uint32_t behind_gone = behind & (behind - 1);
  const std::uint32_t before = word.there & (bit - 1);
  const std::uint32_t gone = behind ^ behind_gone;
  word.merged = bit | gone;
  word.there ^= gone;
  word.symbols[place] = result;
  const auto last_before = static_cast<unsigned>(std::bit_width(before | 1) - 1);
  const std::uint32_t left = word.symbols[last_before];
  const std::uint32_t right = word.symbols[lowest_bit(behind_gone | 1U << 31)];
  word.left = open(pairs, pair_table::pair_of(left, result), before & 1U << last_before);
  word.right = open(pairs, pair_table::pair_of(result, right),
                    bit & (0U - static_cast<std::uint32_t>(behind_gone != 0)));
}

// Performs one merge. Returns false if no merge applies.
bool merge_once_portable(const pair_table& pairs, short_word& word) noexcept {
  std::uint32_t place = 0;
  const auto size = static_cast<std::uint32_t>(std::bit_width(word.there));
  for (std::uint32_t i = 1; i < size; ++i) {
    if (word.merges[i] < word.merges[place]) place = i;
  }
  if (word.merges[place] == pair_table::none) return false;
  replace(pairs, word, place, word.merges[place]);
  return true;
}

void close_pairs_portable(const pair_table& pairs, short_word& word) noexcept {
  merge_at(word, word.merged) = pair_table::none;
  merge_at(word, word.merged & (word.merged - 1)) = pair_table::none;
  if (word.left.bit != 0) merge_at(word, word.left.bit) = pairs.find(word.left.pair);
  if (word.right.bit != 0) merge_at(word, word.right.bit) = pairs.find(word.right.pair);
}

void collect_portable(short_word& word) noexcept {
  word.count = 0;
  for (std::uint32_t there = word.there; there != 0; there &= there - 1) {
    word.symbols[word.count++ % short_word::max_bytes] = word.symbols[lowest_bit(there)];
  }
}

void merge_portable(const pair_table& pairs, std::span<short_word> words) noexcept {
  std::array<short_word*, short_word::most_at_once> open;
  std::size_t count = 0;
  for (short_word& word : words) {
    if (merge_once_portable(pairs, word)) open[count++] = &word;
  }
  while (count != 0) {
    std::size_t left = 0;
    for (std::size_t i = 0; i < count; ++i) {
      close_pairs_portable(pairs, *open[i]);
      if (merge_once_portable(pairs, *open[i])) open[left++] = open[i];
    }
    count = left;
  }
  for (short_word& word : words) collect_portable(word);
}

#if defined(__x86_64__)
#define MILLRACE_AVX512_INLINE [[MILLRACE_AVX512, gnu::always_inline]] inline

// Initializes the symbols and the merges at indices `at` to `at` + 15. In `lanes`, a bit is set for
// each byte of `bytes` that belongs to the word.
// @return a bit for each lane whose byte has no token
MILLRACE_AVX512_INLINE unsigned start_vector(const pair_table& pairs, __m128i bytes, __m128i next,
                                             std::uint32_t lanes, std::uint32_t pair_lanes,
                                             std::size_t at, short_word& word) noexcept {
  const __m512i left = _mm512_cvtepu8_epi32(bytes);
  const __m512i both = _mm512_or_si512(_mm512_slli_epi32(left, 8), _mm512_cvtepu8_epi32(next));
  const __m512i ids = _mm512_mask_i32gather_epi32(
      _mm512_setzero_si512(), static_cast<__mmask16>(lanes), left, pairs.byte_ids().data(), 4);
  const __m512i merges = _mm512_mask_i32gather_epi32(
      _mm512_set1_epi32(-1), static_cast<__mmask16>(pair_lanes), both, pairs.byte_pairs(), 4);
  _mm512_store_si512(word.symbols + at, ids);
  _mm512_store_si512(word.merges + at, merges);
  return _mm512_movepi32_mask(ids);
}

[[MILLRACE_AVX512]] bool start_avx512(const pair_table& pairs, std::string_view text,
                                      short_word& word) noexcept {
  const std::uint32_t lanes = bits_below(text.size());
  const __m256i bytes = _mm256_maskz_loadu_epi8(lanes, text.data());
  const __m256i next = _mm256_maskz_loadu_epi8(lanes >> 1, text.data() + 1);
  unsigned absent = start_vector(pairs, _mm256_castsi256_si128(bytes), _mm256_castsi256_si128(next),
                                 lanes, lanes >> 1, 0, word);
  if (text.size() > 16) {
    absent |= start_vector(pairs, _mm256_extracti128_si256(bytes, 1),
                           _mm256_extracti128_si256(next, 1), lanes >> 16, lanes >> 17, 16, word);
  } else {
    _mm512_store_si512(word.merges + 16, _mm512_set1_epi32(-1));
  }
  return absent == 0;
}

// Finds the merge result of an open pair (a pair that the latest merge created). Does not branch on
// whether the pair is in its cache line.
MILLRACE_AVX512_INLINE std::uint32_t find_avx512(const pair_table& pairs,
                                                 const short_word::open_pair& open) noexcept {
  const __m512i pair = _mm512_set1_epi64(static_cast<long long>(open.pair));
  const __m512i slots = _mm512_load_si512(open.line->slots.data());
  const __mmask8 same = _mm512_cmpeq_epi64_mask(_mm512_srli_epi64(slots, 24), pair);
  const auto found = static_cast<std::uint32_t>(_mm_cvtsi128_si32(
                         _mm512_castsi512_si128(_mm512_maskz_compress_epi64(same, slots)))) &
                     0xFFFFFF;
  const auto absent = 0U - static_cast<std::uint32_t>(same == 0);
  if ((absent & (open.line->slots[7] != 0)) != 0) [[unlikely]] {
    return pairs.find(open.pair);
  }
  return found | absent;
}

// Performs the next merge. If `Later` is true, first looks up the pairs that the latest merge
// created. Returns false if no merge applies.
template <std::size_t Vectors, bool Later>
MILLRACE_AVX512_INLINE bool merge_once_avx512(const pair_table& pairs, short_word& word) noexcept {
  __m512i merges[2] = {_mm512_load_si512(word.merges), _mm512_set1_epi32(-1)};
  if constexpr (Vectors == 2) merges[1] = _mm512_load_si512(word.merges + 16);
  if constexpr (Later) {
    const auto left = static_cast<int>(find_avx512(pairs, word.left));
    const auto right = static_cast<int>(find_avx512(pairs, word.right));
    for (std::size_t v = 0; v < Vectors; ++v) {
      __m512i& some = merges[v];
      some = _mm512_mask_set1_epi32(some, static_cast<__mmask16>(word.merged >> 16 * v), -1);
      some = _mm512_mask_set1_epi32(some, static_cast<__mmask16>(word.left.bit >> 16 * v), left);
      some = _mm512_mask_set1_epi32(some, static_cast<__mmask16>(word.right.bit >> 16 * v), right);
      _mm512_store_si512(word.merges + 16 * v, some);
    }
  }
  const std::uint32_t lowest =
      _mm512_reduce_min_epu32(Vectors == 1 ? merges[0] : _mm512_min_epu32(merges[0], merges[1]));
  if (lowest == pair_table::none) return false;
  const __m512i all = _mm512_set1_epi32(static_cast<int>(lowest));
  std::uint32_t places = _mm512_cmpeq_epi32_mask(merges[0], all);
  if constexpr (Vectors == 2) {
    places |= std::uint32_t{_mm512_cmpeq_epi32_mask(merges[1], all)} << 16;
  }
  replace(pairs, word, lowest_bit(places), lowest);
  return true;
}

MILLRACE_AVX512_INLINE void collect_avx512(short_word& word) noexcept {
  const std::uint32_t there = word.there;
  const __m512i low =
      _mm512_maskz_compress_epi32(static_cast<__mmask16>(there), _mm512_load_si512(word.symbols));
  const __m512i high = _mm512_maskz_compress_epi32(static_cast<__mmask16>(there >> 16),
                                                   _mm512_load_si512(word.symbols + 16));
  const auto low_count = static_cast<std::size_t>(std::popcount(there & 0xFFFF));
  _mm512_store_si512(word.symbols, low);
  _mm512_storeu_si512(word.symbols + low_count, high);
  word.count = static_cast<std::size_t>(std::popcount(there));
}

template <std::size_t Vectors>
[[MILLRACE_AVX512]] void merge_avx512(const pair_table& pairs,
                                      std::span<short_word> words) noexcept {
  std::array<short_word*, short_word::most_at_once> open;
  std::size_t count = 0;
  for (short_word& word : words) {
    open[count] = &word;
    count += merge_once_avx512<Vectors, false>(pairs, word) ? 1U : 0U;
  }
  while (count != 0) {
    std::size_t left = 0;
    for (std::size_t i = 0; i < count; ++i) {
      open[left] = open[i];
      left += merge_once_avx512<Vectors, true>(pairs, *open[i]) ? 1U : 0U;
    }
    count = left;
  }
  for (short_word& word : words) collect_avx512(word);
}
#undef MILLRACE_AVX512_INLINE

#define MILLRACE_AVX2 __attribute__((target("avx2,bmi,bmi2")))
#define MILLRACE_AVX2_INLINE MILLRACE_AVX2 __attribute__((always_inline)) inline

MILLRACE_AVX2_INLINE unsigned equal_avx2(const std::uint64_t* slots, __m256i pair) noexcept {
  const __m256i held =
      _mm256_srli_epi64(_mm256_load_si256(reinterpret_cast<const __m256i*>(slots)), 24);
  return static_cast<unsigned>(
      _mm256_movemask_pd(_mm256_castsi256_pd(_mm256_cmpeq_epi64(held, pair))));
}

MILLRACE_AVX2_INLINE std::uint32_t find_avx2(const pair_table& pairs,
                                             const short_word::open_pair& open) noexcept {
  const __m256i pair = _mm256_set1_epi64x(static_cast<long long>(open.pair));
  const std::uint64_t* const slots = open.line->slots.data();
  const unsigned same = equal_avx2(slots, pair) | equal_avx2(slots + 4, pair) << 4;
  const auto found = static_cast<std::uint32_t>(slots[lowest_bit(same | 0x80)]) & 0xFFFFFF;
  const auto absent = 0U - static_cast<std::uint32_t>(same == 0);
  if ((absent & (slots[7] != 0)) != 0) [[unlikely]] {
    return pairs.find(open.pair);
  }
  return found | absent;
}

// Looks up the pairs that the latest merge created.
MILLRACE_AVX2_INLINE void close_pairs_avx2(const pair_table& pairs, short_word& word) noexcept {
  merge_at(word, word.merged) = pair_table::none;
  merge_at(word, word.merged & (word.merged - 1)) = pair_table::none;
  merge_at(word, word.left.bit) = find_avx2(pairs, word.left);
  merge_at(word, word.right.bit) = find_avx2(pairs, word.right);
}

// Performs the next merge. Returns false if no merge applies.
template <std::size_t Vectors>
MILLRACE_AVX2_INLINE bool merge_once_avx2(const pair_table& pairs, short_word& word) noexcept {
  __m256i merges[Vectors];
  __m256i least = _mm256_set1_epi32(-1);
  for (std::size_t v = 0; v < Vectors; ++v) {
    merges[v] = _mm256_load_si256(reinterpret_cast<const __m256i*>(word.merges + 8 * v));
    least = _mm256_min_epu32(least, merges[v]);
  }
  __m128i half = _mm_min_epu32(_mm256_castsi256_si128(least), _mm256_extracti128_si256(least, 1));
  half = _mm_min_epu32(half, _mm_shuffle_epi32(half, 0x4E));
  half = _mm_min_epu32(half, _mm_shuffle_epi32(half, 0xB1));
  const auto lowest = static_cast<std::uint32_t>(_mm_cvtsi128_si32(half));
  if (lowest == pair_table::none) return false;
  const __m256i all = _mm256_set1_epi32(static_cast<int>(lowest));
  std::uint32_t places = 0;
  for (std::size_t v = 0; v < Vectors; ++v) {
    const __m256i same = _mm256_cmpeq_epi32(merges[v], all);
    places |= static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(same))) << 8 * v;
  }
  replace(pairs, word, lowest_bit(places), lowest);
  return true;
}

// Closes the pairs of all words before it looks for their next merges: a vector that is loaded
// right after one of its numbers was stored has to wait for the store.
template <std::size_t Vectors>
MILLRACE_AVX2 void merge_avx2(const pair_table& pairs, std::span<short_word> words) noexcept {
  std::array<short_word*, short_word::most_at_once> open;
  std::size_t count = 0;
  for (short_word& word : words) open[count++] = &word;
  while (true) {
    std::size_t left = 0;
    for (std::size_t i = 0; i < count; ++i) {
      open[left] = open[i];
      left += merge_once_avx2<Vectors>(pairs, *open[i]) ? 1U : 0U;
    }
    count = left;
    if (count == 0) break;
    for (std::size_t i = 0; i < count; ++i) close_pairs_avx2(pairs, *open[i]);
  }
  for (short_word& word : words) collect_portable(word);
}
#undef MILLRACE_AVX2
#undef MILLRACE_AVX2_INLINE
#elif defined(__AARCH64EL__)
static_assert(short_word::max_bytes == 32 && pair_table::max_id < 1 << 24);

// While it merges words, each of `merges` is a result times 32, plus its index, or `none`. So the
// minimum of them is the next merge and its place, the leftmost on ties, and no mask is needed.
std::uint32_t with_place(std::uint32_t merge, std::uint32_t place) noexcept {
  return merge == pair_table::none ? merge : merge << 5 | place;
}

template <std::size_t Vectors>
void add_places(short_word& word) noexcept {
  uint32x4_t place =
      vcombine_u32(vcreate_u32(std::uint64_t{1} << 32), vcreate_u32(std::uint64_t{3} << 32 | 2));
  for (std::size_t v = 0; v < Vectors; ++v) {
    const uint32x4_t merges = vld1q_u32(word.merges + 4 * v);
    const uint32x4_t none = vceqq_u32(merges, vdupq_n_u32(pair_table::none));
    vst1q_u32(word.merges + 4 * v, vorrq_u32(vsliq_n_u32(place, merges, 5), none));
    place = vaddq_u32(place, vdupq_n_u32(4));
  }
}

// Finds the merge result of an open pair, with its place. A slot that holds the pair differs from
// it only in the result, so it becomes the least of all after a saturating narrowing.
inline std::uint32_t find_neon(const pair_table& pairs,
                               const short_word::open_pair& open) noexcept {
  const std::uint64_t* const slots = open.line->slots.data();
  const uint64x2_t pair = vdupq_n_u64(open.pair << 24);
  const auto differences = [&](std::size_t i) {
    return vqmovn_high_u64(vqmovn_u64(veorq_u64(vld1q_u64(slots + i), pair)),
                           veorq_u64(vld1q_u64(slots + i + 2), pair));
  };
  const std::uint32_t least = vminvq_u32(vminq_u32(differences(0), differences(4)));
  const std::uint32_t place = lowest_bit(open.bit);
  const auto absent = 0U - static_cast<std::uint32_t>(least >> 24 != 0);
  if ((absent & (slots[7] != 0)) != 0) [[unlikely]] {
    return with_place(pairs.find(open.pair), place);
  }
  return (least << 5 | place) | absent;
}

// Looks up the pairs that the latest merge created.
inline void close_pairs_neon(const pair_table& pairs, short_word& word) noexcept {
  merge_at(word, word.merged) = pair_table::none;
  merge_at(word, word.merged & (word.merged - 1)) = pair_table::none;
  merge_at(word, word.left.bit) = find_neon(pairs, word.left);
  merge_at(word, word.right.bit) = find_neon(pairs, word.right);
}

// Performs the next merge. Returns false if no merge applies.
template <std::size_t Vectors>
inline bool merge_once_neon(const pair_table& pairs, short_word& word) noexcept {
  uint32x4_t least = vld1q_u32(word.merges);
  for (std::size_t v = 1; v < Vectors; ++v) {
    least = vminq_u32(least, vld1q_u32(word.merges + 4 * v));
  }
  const std::uint32_t next = vminvq_u32(least);
  if (next == pair_table::none) return false;
  replace(pairs, word, next % 32, next / 32);
  return true;
}

// Closes the pairs of all words before it looks for their next merges: a vector that is loaded
// right after one of its numbers was stored has to wait for the store.
template <std::size_t Vectors>
void merge_neon(const pair_table& pairs, std::span<short_word> words) noexcept {
  std::array<short_word*, short_word::most_at_once> open;
  std::size_t count = 0;
  for (short_word& word : words) {
    add_places<Vectors>(word);
    open[count++] = &word;
  }
  while (true) {
    std::size_t left = 0;
    for (std::size_t i = 0; i < count; ++i) {
      open[left] = open[i];
      left += merge_once_neon<Vectors>(pairs, *open[i]) ? 1U : 0U;
    }
    count = left;
    if (count == 0) break;
    for (std::size_t i = 0; i < count; ++i) close_pairs_neon(pairs, *open[i]);
  }
  for (short_word& word : words) collect_portable(word);
}
#endif

}  // namespace

bool start_word(const pair_table& pairs, std::string_view text, short_word& word,
                instruction_set set) noexcept {
  word.there = bits_below(text.size());
#if defined(__x86_64__)
  if (set == instruction_set::avx512) return start_avx512(pairs, text, word);
#endif
  (void)set;
  return start_portable(pairs, text, word);
}

void merge_short(const pair_table& pairs, std::span<short_word> words, std::size_t longest_bytes,
                 instruction_set set) noexcept {
#if defined(__x86_64__)
  if (set == instruction_set::avx512) {
    longest_bytes <= 16 ? merge_avx512<1>(pairs, words) : merge_avx512<2>(pairs, words);
    return;
  }
  if (set == instruction_set::avx2) {
    longest_bytes <= 16 ? merge_avx2<2>(pairs, words) : merge_avx2<4>(pairs, words);
    return;
  }
#elif defined(__AARCH64EL__)
  if (set == instruction_set::neon) {
    longest_bytes <= 16 ? merge_neon<4>(pairs, words) : merge_neon<8>(pairs, words);
    return;
  }
#endif
  (void)set;
  (void)longest_bytes;
  merge_portable(pairs, words);
}

}  // namespace millrace::tokenizer::detail
