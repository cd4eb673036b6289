// SPDX-License-Identifier: Apache-2.0
#include "bpe/short_merge.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "split/intrinsics.hpp"

namespace millrace::tokenizer::detail {
namespace {

template <std::size_t Size>
constexpr std::array<std::uint8_t, Size> places_from(int first) noexcept {
  std::array<std::uint8_t, Size> all{};
  for (std::size_t i = 0; i < Size; ++i) {
    all[i] = static_cast<std::uint8_t>(static_cast<int>(i) + first);
  }
  return all;
}

// Merges a symbol with the next one, and prefetches the cache lines of the two new pairs. Has no
// branches, because they would be unpredictable.
template <class Word>
inline void replace(const pair_table& pairs, Word& word, std::uint32_t merge) noexcept {
  const std::uint32_t place = merge % (std::uint32_t{1} << Word::place_bits);
  const std::uint32_t result = merge >> Word::place_bits;
  const std::uint8_t gone = word.next[place];
  const std::uint8_t behind = word.next[gone];
  const std::uint8_t before = word.before[place];
  word.next[place] = behind;
  word.before[behind] = static_cast<std::uint8_t>(place);
  word.symbols[place] = result;
  word.merges[gone] = Word::no_merge;
  word.left = {pairs.place_of(word.symbols[before], result), before};
  word.right = {pairs.place_of(result, word.symbols[behind]), place};
  __builtin_prefetch(word.left.in_table.home);
  __builtin_prefetch(word.right.in_table.home);
}

// Notes the merges of the two pairs that the latest merge created.
template <class Word>
inline void close_pairs(const pair_table& pairs, Word& word, std::uint32_t left,
                        std::uint32_t right) noexcept {
  if ((left == pair_table::elsewhere) | (right == pair_table::elsewhere)) [[unlikely]] {
    const auto find = [&](std::uint32_t place) {
      return pairs.find(word.symbols[place], word.symbols[word.next[place]]);
    };
    if (left == pair_table::elsewhere) left = find(word.left.place);
    if (right == pair_table::elsewhere) right = find(word.right.place);
  }
  word.merges[word.left.place] = Word::with_place(left, word.left.place);
  word.merges[word.right.place] = Word::with_place(right, word.right.place);
}

template <class Word>
inline void collect(Word& word) noexcept {
  word.count = 0;
  for (std::size_t place = 1; place <= word.size; place = word.next[place]) {
    word.symbols[word.count++] = word.symbols[place];
  }
}

std::uint32_t find_portable(const pair_table::place& at) noexcept {
  std::size_t i = 0;
  while (i < pair_table::pairs_per_line && at.home->tags[i] != at.tag) ++i;
  return at.home->merges[i];
}

template <class Word>
std::uint32_t least_portable(const Word& word) noexcept {
  return *std::min_element(word.merges + 1, word.merges + word.size + 1);
}

// Closes the pairs of all words before it looks for their next merges: a vector that is loaded
// right after one of its numbers was stored has to wait for the store.
//
// @tparam Least  returns the least of the merges of a word
// @tparam Find   returns what the pair's line tells of its merge
template <auto Least, auto Find, class Word>
void merge_all(const pair_table& pairs, std::span<Word> words) noexcept {
  std::array<Word*, short_word::most_at_once> open;
  std::size_t count = 0;
  for (Word& word : words) open[count++] = &word;
  while (count != 0) {
    std::size_t left = 0;
    for (std::size_t i = 0; i < count; ++i) {
      Word& word = *open[i];
      const std::uint32_t least = Least(word);
      if (least >= Word::no_merge) continue;
      replace(pairs, word, least);
      open[left++] = &word;
    }
    count = left;
    for (std::size_t i = 0; i < count; ++i) {
      Word& word = *open[i];
      close_pairs(pairs, word, Find(word.left.in_table), Find(word.right.in_table));
    }
  }
}

#if defined(__x86_64__)
#define MILLRACE_AVX2 __attribute__((target("avx2,bmi,bmi2")))
#define MILLRACE_AVX2_INLINE MILLRACE_AVX2 __attribute__((always_inline)) inline

MILLRACE_AVX2_INLINE std::uint32_t find_avx2(const pair_table::place& at) noexcept {
  const __m256i tags = _mm256_load_si256(reinterpret_cast<const __m256i*>(at.home->tags.data()));
  const __m256i same = _mm256_cmpeq_epi32(tags, _mm256_set1_epi32(static_cast<int>(at.tag)));
  const auto bits = static_cast<unsigned>(_mm256_movemask_ps(_mm256_castsi256_ps(same)));
  return at.home->merges[_tzcnt_u32(bits | 1U << pair_table::pairs_per_line)];
}

// The least of the merges of a word that has at most 8 * Vectors symbols, or any number if Vectors
// is 0.
template <std::size_t Vectors, class Word>
MILLRACE_AVX2_INLINE std::uint32_t least_avx2(const Word& word) noexcept {
  const auto* const merges = reinterpret_cast<const __m256i*>(word.merges);
  const std::size_t vectors = Vectors != 0 ? Vectors : (word.size + 7) / 8;
  __m256i least = _mm256_load_si256(merges);
  for (std::size_t v = 1; v < vectors; ++v) {
    least = _mm256_min_epu32(least, _mm256_load_si256(merges + v));
  }
  __m128i half = _mm_min_epu32(_mm256_castsi256_si128(least), _mm256_extracti128_si256(least, 1));
  half = _mm_min_epu32(half, _mm_shuffle_epi32(half, 0x4E));
  half = _mm_min_epu32(half, _mm_shuffle_epi32(half, 0xB1));
  return static_cast<std::uint32_t>(_mm_cvtsi128_si32(half));
}

// merge_all(), which cannot inline functions for AVX2.
template <std::size_t Vectors, class Word>
MILLRACE_AVX2 void merge_avx2(const pair_table& pairs, std::span<Word> words) noexcept {
  std::array<Word*, short_word::most_at_once> open;
  std::size_t count = 0;
  for (Word& word : words) open[count++] = &word;
  while (true) {
    std::size_t left = 0;
    for (std::size_t i = 0; i < count; ++i) {
      Word& word = *open[i];
      const std::uint32_t least = least_avx2<Vectors>(word);
      if (least >= Word::no_merge) continue;
      replace(pairs, word, least);
      open[left++] = &word;
    }
    count = left;
    if (count == 0) return;
    for (std::size_t i = 0; i < count; ++i) {
      Word& word = *open[i];
      close_pairs(pairs, word, find_avx2(word.left.in_table), find_avx2(word.right.in_table));
    }
  }
}
#undef MILLRACE_AVX2
#undef MILLRACE_AVX2_INLINE
#elif defined(__AARCH64EL__)
inline std::uint32_t find_neon(const pair_table::place& at) noexcept {
  const uint32x4_t tag = vdupq_n_u32(at.tag);
  const std::uint32_t* const tags = at.home->tags.data();
  const uint16x8_t same = vcombine_u16(vmovn_u32(vceqq_u32(vld1q_u32(tags), tag)),
                                       vmovn_u32(vceqq_u32(vld1q_u32(tags + 4), tag)));
  const std::uint64_t bytes = vget_lane_u64(vreinterpret_u64_u8(vmovn_u16(same)), 0);
  return at.home->merges[static_cast<std::size_t>(std::countr_zero(
                             bytes | std::uint64_t{0xFF} << 8 * pair_table::pairs_per_line)) /
                         8];
}

// The least of the merges of a word that has at most 4 * Vectors symbols, or any number if Vectors
// is 0.
template <std::size_t Vectors, class Word>
inline std::uint32_t least_neon(const Word& word) noexcept {
  const std::size_t vectors = Vectors != 0 ? Vectors : (word.size + 3) / 4;
  uint32x4_t least = vld1q_u32(word.merges);
  for (std::size_t v = 1; v < vectors; ++v) {
    least = vminq_u32(least, vld1q_u32(word.merges + 4 * v));
  }
  return vminvq_u32(least);
}
#endif

template <class Word>
bool start(const pair_table& pairs, std::string_view text, Word& word) noexcept {
  word.start(text.size());
  const auto byte = [&](std::size_t i) { return std::size_t{static_cast<unsigned char>(text[i])}; };
  std::int32_t lowest = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const std::int32_t id = pairs.byte_ids()[byte(i)];
    lowest = std::min(lowest, id);
    word.set(
        i, static_cast<std::uint32_t>(id),
        i + 1 < text.size() ? pairs.byte_pairs()[byte(i) << 8 | byte(i + 1)] : pair_table::none);
  }
  return lowest >= 0;
}

// Merges words of at most `Most` symbols, or of any number if that is 0.
template <std::size_t Most, class Word>
void merge_words(const pair_table& pairs, std::span<Word> words,
                 [[maybe_unused]] instruction_set set) noexcept {
#if defined(__x86_64__)
  if (set != instruction_set::portable) {
    merge_avx2<Most / 8>(pairs, words);
  } else
#elif defined(__AARCH64EL__)
  if (set == instruction_set::neon) {
    merge_all<least_neon<Most / 4, Word>, find_neon>(pairs, words);
  } else
#endif
  {
    merge_all<least_portable<Word>, find_portable>(pairs, words);
  }
  for (Word& word : words) collect(word);
}

}  // namespace

template <std::size_t MaxBytes>
void merging_word<MaxBytes>::start(std::size_t symbol_count) noexcept {
  constexpr std::size_t places = max_bytes + 2;
  static constexpr auto behind = places_from<places>(1);
  static constexpr auto ahead = places_from<places>(-1);  // before place 0 is nothing
  size = symbol_count;
  std::fill(std::begin(merges), std::end(merges), no_merge);
  symbols[0] = pair_table::no_symbol;
  symbols[size + 1] = pair_table::no_symbol;
  std::memcpy(next, behind.data(), sizeof next);
  std::memcpy(before, ahead.data(), sizeof before);
}
template struct merging_word<32>;
template struct merging_word<128>;

bool start_word(const pair_table& pairs, std::string_view text, short_word& word) noexcept {
  return start(pairs, text, word);
}
bool start_word(const pair_table& pairs, std::string_view text, medium_word& word) noexcept {
  return start(pairs, text, word);
}

void merge_short(const pair_table& pairs, std::span<short_word> words,
                 instruction_set set) noexcept {
  std::size_t longest = 0;
  for (const short_word& word : words) longest = std::max(longest, word.size);
  longest <= 16 ? merge_words<16>(pairs, words, set) : merge_words<32>(pairs, words, set);
}

void merge_medium(const pair_table& pairs, medium_word& word, instruction_set set) noexcept {
  merge_words<0>(pairs, std::span(&word, 1), set);
}

}  // namespace millrace::tokenizer::detail
